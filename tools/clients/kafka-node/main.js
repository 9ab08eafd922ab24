// kafka-node on trial: creates a topic, produces, consumes in a group and commits, and says after each step how it went.
//
// node main.js ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS
const { Admin, ConsumerGroup, KafkaClient, Producer } = require("kafka-node");

const [kafkaHost, clientId, topic, groupId, count, seconds] = process.argv.slice(2);

// What a client throws where nobody can catch it is of the step that runs.
let fall = () => {};
process.on("uncaughtException", (error) => fall(error));

async function step(name, body) {
  let error = null;
  let timer;
  const late = new Promise((_, reject) => {
    fall = reject;
    timer = setTimeout(() => reject(new Error(`nothing in ${seconds} s`)), Number(seconds) * 1000);
  });
  try {
    await Promise.race([new Promise(body), late]);
  } catch (caught) {
    error = `${(caught && caught.name) || "error"}: ${(caught && caught.message) || JSON.stringify(caught)}`;
  }
  clearTimeout(timer);
  console.log(JSON.stringify({ step: name, error }));
  return error === null;
}

const client = () => new KafkaClient({ kafkaHost, clientId, autoConnect: true });
const answer = (resolve, reject) => (error, found) => (error ? reject(error) : resolve(found));
// What a client tries again after a failure would be taken for the next step's.
const closing = (own, end) => (value) => own.close(() => end(value));

async function main() {
  await step("create", (resolve, reject) => {
    const own = client();
    const [good, bad] = [closing(own, resolve), closing(own, reject)];
    own.on("error", bad);
    own.on("ready", () => {
      const wanted = { topic: `${topic}-own`, partitions: 1, replicationFactor: 1 };
      new Admin(own).createTopics([wanted], (error, found) =>
        error || (found && found.length) ? bad(error || new Error(found[0].error)) : good()
      );
    });
  });
  await step("produce", (resolve, reject) => {
    const producer = new Producer(client(), { requireAcks: 1 });
    const [good, bad] = [closing(producer, resolve), closing(producer, reject)];
    producer.on("error", bad);
    producer.on("ready", () => {
      const messages = Array.from({ length: Number(count) }, (_, number) => `own-${number}`);
      producer.send([{ topic, messages }], answer(good, bad));
    });
  });
  let consumer;
  const consumed = await step("consume", (resolve, reject) => {
    // Its id is the client id of its connections.
    const told = { kafkaHost, groupId, id: clientId, autoCommit: false };
    consumer = new ConsumerGroup({ ...told, fromOffset: "earliest", outOfRangeOffset: "earliest" }, topic);
    let left = Number(count);
    consumer.on("error", reject);
    consumer.on("message", (one) => {
      left -= String(one.value).startsWith("seed-") ? 1 : 0;
      if (left === 0) resolve();
    });
  });
  if (consumed) await step("commit", (resolve, reject) => consumer.commit(true, answer(resolve, reject)));
  process.exit(0);
}

main();
