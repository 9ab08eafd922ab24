// KafkaJS on trial: creates a topic, produces, consumes in a group and commits, and says after each step how it went.
//
// node main.js ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS
const { Kafka, logLevel } = require("kafkajs");

const [address, clientId, topic, groupId, count, seconds] = process.argv.slice(2);
const kafka = new Kafka({ brokers: [address], clientId, logLevel: logLevel.NOTHING });

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
    await Promise.race([body(), late]);
  } catch (caught) {
    error = `${caught.name}: ${caught.message}`;
  }
  clearTimeout(timer);
  console.log(JSON.stringify({ step: name, error }));
  return error === null;
}

async function main() {
  await step("create", async () => {
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: `${topic}-own`, numPartitions: 1, replicationFactor: 1 }] });
  });
  await step("produce", async () => {
    const producer = kafka.producer();
    await producer.connect();
    const messages = Array.from({ length: Number(count) }, (_, number) => ({ value: `own-${number}` }));
    await producer.send({ topic, messages });
  });
  const consumer = kafka.consumer({ groupId });
  let next = null;
  const consumed = await step("consume", async () => {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    await new Promise((resolve, reject) => {
      let left = Number(count);
      consumer.on(consumer.events.CRASH, (event) => reject(event.payload.error));
      consumer.run({
        autoCommit: false,
        eachMessage: async ({ partition, message }) => {
          left -= message.value.toString().startsWith("seed-") ? 1 : 0;
          next = { topic, partition, offset: String(Number(message.offset) + 1) };
          if (left === 0) resolve();
        },
      });
    });
  });
  if (consumed) await step("commit", () => consumer.commitOffsets([next]));
  process.exit(0);
}

main();
