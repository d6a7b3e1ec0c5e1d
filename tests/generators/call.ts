// Create a model, learn two events and predict, by the generated client in client/.
import { Configuration, EventsApi, Learned, ModelsApi, Predicted } from "./client";

async function main(): Promise<void> {
  const configuration = new Configuration({ basePath: process.argv[2] });
  const models = new ModelsApi(configuration);
  const events = new EventsApi(configuration);
  const model = `generated-typescript-${Date.now()}`;
  await models.putModel(model, {
    learner: { type: "perceptron" },
    labels: ["ham", "spam"],
  });
  await events.learn(model, { x: { free: 1 }, y: "spam", id: "m1" });
  const learned = (await events.learn(model, { x: { lunch: 1 }, y: "ham" })).data as Learned;
  const found = (await events.predict(model, { x: { free: 1 } })).data as Predicted;
  // free 1, intercept 1; then lunch -1, intercept 0
  if (learned.score !== 1 || found.y !== "spam" || found.score !== 1) {
    throw new Error(JSON.stringify([learned, found]));
  }
  const info = (await models.getModel(model)).data;
  if (info.events !== 2 || info.mistakes !== 2) throw new Error(JSON.stringify(info));
}

void main();
