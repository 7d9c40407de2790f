// How to begin, shown while there are no queues.
import { useState } from "preact/hooks";
import { post } from "./api";
import { ask } from "./dialog";
import { Copy, Empty, Segments } from "./parts";
import { may, standing } from "./session";
import { touch } from "./store";
import { many } from "./text";

const queue = "hello";
const samples = 50;

type Language = "tarry" | "Go" | "curl" | "Node" | "Python";

const json = `"Content-Type": "application/json"`;

// programs push a message and handle it, in each language. url is the server's; token: it asks
// for one.
const programs: Record<Language, (url: string, token: boolean) => string> = {
  tarry: (url, token) => {
    const server = /^http:\/\/(localhost|127\.0\.0\.1):8277$/.test(url) ? "" : ` --server ${url}`;
    return `${token ? "export TARRY_TOKEN=…\n" : ""}tarry push ${queue} '"hi"' --in 10s${server}
tarry work ${queue}${server} -- cat`;
  },
  Go: (url, token) => `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/tarryhq/tarry"
	_ "github.com/tarryhq/tarry/engine/httpengine"
)

var Hello = tarry.NewTopic[json.RawMessage]("${queue}")

func main() {
	ctx := context.Background()
	c, err := tarry.Open(ctx, "${url}${token ? "?token_file=token.txt" : ""}", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := Hello.Push(ctx, c, json.RawMessage(\`"hi"\`), tarry.In(10*time.Second)); err != nil {
		log.Fatal(err)
	}
	w := tarry.NewWorker(c, nil)
	tarry.Handle(w, Hello, func(ctx context.Context, m *tarry.Message[json.RawMessage]) error {
		fmt.Println(string(m.Body))
		return nil
	})
	log.Fatal(w.Run(ctx))
}`,
  curl: (url, token) => {
    const curl = `curl -s -H 'Content-Type: application/json'${token ? ' -H "Authorization: Bearer $TARRY_TOKEN"' : ""} ${url}/v1`;
    return `${curl}/queues/${queue}/messages -d '{"body":"hi","delay":"10s"}'
lease=$(${curl}/lease -d '{"queues":["${queue}"],"wait":"20s"}' | sed 's/.*"lease":"\\([^"]*\\)".*/\\1/')
${curl}/settle -d '{"settlements":[{"lease":"'$lease'","do":"ack"}]}'`;
  },
  Node: (url, token) => `const post = async (path, body) => {
  const headers = { ${json}${token ? ", Authorization: `Bearer ${process.env.TARRY_TOKEN}`" : ""} };
  const answer = await fetch("${url}/v1" + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
await post("/queues/${queue}/messages", { body: "hi", delay: "10s" });
for (;;) {
  const { messages } = await post("/lease", { queues: ["${queue}"], wait: "20s" });
  for (const m of messages) {
    console.log(m.body);
    await post("/settle", { settlements: [{ lease: m.lease, do: "ack" }] });
  }
}`,
  Python: (url, token) => `import json, ${token ? "os, " : ""}urllib.request

def post(path, body):
    headers = {${json}${token ? ', "Authorization": "Bearer " + os.environ["TARRY_TOKEN"]' : ""}}
    request = urllib.request.Request("${url}/v1" + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))

post("/queues/${queue}/messages", {"body": "hi", "delay": "10s"})
while True:
    for m in post("/lease", {"queues": ["${queue}"], "wait": "20s"})["messages"]:
        print(m["body"])
        post("/settle", {"settlements": [{"lease": m["lease"], "do": "ack"}]})`,
};

export function Start() {
  const [language, setLanguage] = useState<Language>("tarry");
  const url = new URL(".", location.href).href.replace(/\/(ui\/)?$/, "");
  const program = programs[language](url, !!standing.value?.me?.name);
  return (
    <>
      <Empty title="No queues yet.">A queue exists once a message is pushed to it. Push one that is due in 10 seconds, and handle it:</Empty>
      <div class="bar start">
        <Segments label="In which language" value={language} of={(Object.keys(programs) as Language[]).map((l) => [l, l])} onPick={setLanguage} />
        <Copy text={program}>Copy</Copy>
        {may(queue, "push") && <button onClick={pushSamples}>Push {samples} sample messages…</button>}
      </div>
      <pre class="sheet" tabIndex={0} aria-label={`A program for ${language}`} role="region">
        {program}
      </pre>
    </>
  );
}

// pushSamples pushes messages that are due within the next half hour.
function pushSamples(): void {
  ask({
    title: "Push sample messages?",
    text: (
      <p>
        {many(samples, "message")} go to the queue {queue}, due within the next half hour.
      </p>
    ),
    yes: `Push ${samples}`,
    act: async () => {
      const messages = Array.from({ length: samples }, (_, i) => ({ queue, body: { say: "hi", sample: i + 1 }, delay: `${10 + i * 36}s` }));
      const pushed = await post<{ results: { id: string }[] }>("v1/messages", { messages, atomic: true });
      touch(queue);
      return {
        text: `${many(samples, "message is", "messages are")} pushed to ${queue}.`,
        undo: async () => {
          const { failed } = await post<{ failed: number }>("v1/cancel", { refs: pushed.results.map((r) => ({ queue, id: r.id, if_state: "scheduled" })) });
          touch(queue);
          return { text: `${many(samples - failed, "message is", "messages are")} cancelled.` };
        },
      };
    },
  });
}
