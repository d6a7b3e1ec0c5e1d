// Create a model, learn two events and predict, by the generated client in ../client.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	client "hinged/client"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func features(name string) map[string]*interface{} {
	var one interface{} = 1
	return map[string]*interface{}{name: &one}
}

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers[0].URL = os.Args[1]
	api := client.NewAPIClient(configuration)
	ctx := context.Background()
	model := fmt.Sprintf("generated-go-%d", time.Now().UnixMilli())

	learner := client.PerceptronSpecAsModelSpecLearner(client.NewPerceptronSpec("perceptron"))
	spec := client.NewModelSpec(learner)
	ham, spam := "ham", "spam"
	spec.SetLabels([]string{ham, spam})
	_, _, err := api.ModelsAPI.PutModel(ctx, model).ModelSpec(*spec).Execute()
	must(err)

	learn := func(name string, label string) *client.Learned {
		event := client.NewEvent(label)
		event.SetX(features(name))
		body := client.LearnRequest{Event: event}
		answer, _, err := api.EventsAPI.Learn(ctx, model).LearnRequest(body).Execute()
		must(err)
		return answer.Learned
	}
	learn("free", spam)
	learned := learn("lunch", ham)

	body := client.PredictRequest{Question: client.NewQuestion(features("free"))}
	answer, _, err := api.EventsAPI.Predict(ctx, model).PredictRequest(body).Execute()
	must(err)
	found := answer.Predicted
	// free 1, intercept 1; then lunch -1, intercept 0
	if *learned.Score != 1 || found.Y != spam || found.Score != 1 {
		panic(fmt.Sprintf("%+v %+v", learned, found))
	}

	checkpoint, _, err := api.CheckpointsAPI.MakeCheckpoint(ctx, model).
		CheckpointRequest(*client.NewCheckpointRequest()).Execute()
	must(err)
	if time.Since(time.UnixMilli(checkpoint.CreatedMs)) > time.Hour || checkpoint.Events != 2 {
		panic(fmt.Sprintf("%+v", checkpoint))
	}
}
