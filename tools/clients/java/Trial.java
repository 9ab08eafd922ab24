import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client on trial: creates a topic, produces, consumes in a group and commits, and says after each step
 * how it went. Compiled once against the oldest; what a release lacks or has in another form is found when it runs.
 *
 * java -cp 'JARS/*:CLASSES' Trial ADDRESS CLIENT_ID TOPIC GROUP COUNT SECONDS [SETTING]
 */
public class Trial {
    private static int seconds;

    public static void main(String[] given) throws Exception {
        String topic = given[2];
        int count = Integer.parseInt(given[4]);
        seconds = Integer.parseInt(given[5]);
        Properties told = new Properties();
        told.put("bootstrap.servers", given[0]);
        told.put("client.id", given[1]);
        step("create", () -> create(told, topic + "-own"));
        step("produce", () -> produce(told, topic, count));
        told.put("group.id", given[3]);
        told.put("auto.offset.reset", "earliest");
        told.put("enable.auto.commit", "false");
        StringDeserializer text = new StringDeserializer();
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(told, text, text);
        if (step("consume", () -> consume(consumer, topic, count))) {
            step("commit", () -> {
                consumer.commitSync();
                return null;
            });
        }
        // A step that hangs has a thread of its own, which must not keep the program.
        Runtime.getRuntime().halt(0);
    }

    private static String create(Properties told, String topic) throws Exception {
        Class<?> admin;
        try {
            admin = Class.forName("org.apache.kafka.clients.admin.AdminClient");
        } catch (ClassNotFoundException before011) {
            return "it has no admin client";
        }
        Class<?> made = Class.forName("org.apache.kafka.clients.admin.NewTopic");
        Object wanted = made.getConstructor(String.class, int.class, short.class).newInstance(topic, 1, (short) 1);
        Object client = admin.getMethod("create", Properties.class).invoke(null, told);
        Object answer = admin.getMethod("createTopics", Collection.class).invoke(client, Collections.singleton(wanted));
        Object all = answer.getClass().getMethod("all").invoke(answer);
        Class<?> future = Class.forName("org.apache.kafka.common.KafkaFuture");
        future.getMethod("get", long.class, TimeUnit.class).invoke(all, (long) seconds, TimeUnit.SECONDS);
        return null;
    }

    private static String produce(Properties told, String topic, int count) throws Exception {
        StringSerializer text = new StringSerializer();
        KafkaProducer<String, String> producer = new KafkaProducer<>(told, text, text);
        for (int number = 0; number < count; number++) {
            producer.send(new ProducerRecord<>(topic, "own-" + number)).get(seconds, TimeUnit.SECONDS);
        }
        return null;
    }

    private static String consume(KafkaConsumer<String, String> consumer, String topic, int count) throws Exception {
        consumer.subscribe(Collections.singletonList(topic));
        Method poll;
        Object pause;
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            poll = KafkaConsumer.class.getMethod("poll", duration);
            pause = duration.getMethod("ofMillis", long.class).invoke(null, 500L);
        } catch (NoSuchMethodException before20) {
            poll = KafkaConsumer.class.getMethod("poll", long.class);
            pause = 500L;
        }
        for (int left = count; left > 0; ) {
            for (ConsumerRecord<?, ?> one : (ConsumerRecords<?, ?>) poll.invoke(consumer, pause)) {
                left -= one.value().toString().startsWith("seed-") ? 1 : 0;
            }
        }
        return null;
    }

    /** Runs a step, which gives why it was not tried or null, and says how it went. */
    private static boolean step(String name, Callable<String> body) throws InterruptedException {
        FutureTask<String> task = new FutureTask<>(body);
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        thread.start();
        String left = null;
        String error = null;
        try {
            left = task.get(seconds, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            error = "nothing in " + seconds + " s";
        } catch (ExecutionException failed) {
            Throwable cause = failed;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            error = cause.getClass().getSimpleName() + ": " + cause.getMessage();
        }
        System.out.println("{\"step\": \"" + name + "\", \"error\": " + quoted(error) + ", \"left\": " + quoted(left) + "}");
        return error == null;
    }

    private static String quoted(String text) {
        return text == null ? "null" : '"' + text.replaceAll("[\\\\\"\\p{Cntrl}]", " ") + '"';
    }
}
