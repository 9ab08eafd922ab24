import java.io.FileInputStream;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's own client: sends values to a topic, and reads as many back in a group.
 *
 * java -cp 'JARS/*' Talk.java CLIENT.PROPERTIES TOPIC PREFIX COUNT
 */
public class Talk {
    public static void main(String[] given) throws Exception {
        Properties told = new Properties();
        try (FileInputStream file = new FileInputStream(given[0])) {
            told.load(file);
        }
        String topic = given[1];
        int count = Integer.parseInt(given[3]);
        told.put("group.id", given[2] + "group");
        told.put("auto.offset.reset", "earliest");
        StringSerializer text = new StringSerializer();
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(told, text, text)) {
            for (int number = 0; number < count; number++) {
                producer.send(new ProducerRecord<>(topic, given[2] + number)).get();
            }
        }
        StringDeserializer read = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(told, read, read)) {
            consumer.subscribe(List.of(topic));
            for (int left = count; left > 0; ) {
                for (ConsumerRecord<?, ?> one : poll(consumer)) {
                    String value = one.value().toString();
                    if (value.startsWith(given[2])) {
                        System.out.println(value);
                        left--;
                    }
                }
            }
            consumer.commitSync();
        }
    }

    /** Releases before 2.0 know the one way, and those from 4.0 on the other. */
    private static ConsumerRecords<?, ?> poll(KafkaConsumer<?, ?> consumer) throws Exception {
        try {
            Object second = Duration.ofSeconds(1);
            return (ConsumerRecords<?, ?>) KafkaConsumer.class.getMethod("poll", Duration.class).invoke(consumer, second);
        } catch (NoSuchMethodException before20) {
            return (ConsumerRecords<?, ?>) KafkaConsumer.class.getMethod("poll", long.class).invoke(consumer, 1000L);
        }
    }
}
