import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.CheckpointsApi;
import org.openapitools.client.api.EventsApi;
import org.openapitools.client.api.ModelsApi;
import org.openapitools.client.model.*;

/** Create a model, learn two events and predict, by the generated client. */
public final class Call {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient().setBasePath(arguments[0]);
        EventsApi events = new EventsApi(client);
        String model = "generated-java-" + System.currentTimeMillis();
        ModelSpec spec = new ModelSpec()
            .learner(new ModelSpecLearner(new PerceptronSpec().type(PerceptronSpec.TypeEnum.PERCEPTRON)))
            .labels(List.of("ham", "spam"));
        new ModelsApi(client).putModel(model, spec);

        learn(events, model, "free", "spam");
        Learned learned = learn(events, model, "lunch", "ham");
        PredictRequest body = new PredictRequest(new Question().x(Map.of("free", 1)));
        Predicted found = events.predict(model, body, null, null, null).getPredicted();
        // free 1, intercept 1; then lunch -1, intercept 0
        check(learned.getScore() == 1 && found.getScore() == 1 && "spam".equals(found.getY()), found);

        Checkpoint made = new CheckpointsApi(client).makeCheckpoint(model, new CheckpointRequest());
        long age = System.currentTimeMillis() - made.getCreatedMs();
        check(made.getEvents() == 2 && age < 3_600_000, made);
    }

    private static Learned learn(EventsApi events, String model, String name, String label)
            throws Exception {
        Event event = new Event().x(Map.of(name, 1)).y(label);
        return events.learn(model, new LearnRequest(event), null, null).getLearned();
    }

    private static void check(boolean holds, Object shown) {
        if (!holds) {
            throw new IllegalStateException(String.valueOf(shown));
        }
    }
}
