import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/**
 * What Kafka's admin client asks since 4.1: share groups' and streams groups' offsets, and others.
 *
 * java -cp 'JARS/*' DriveGroups.java ADDRESS STREAMS_GROUP
 */
public class DriveGroups {
    public static void main(String[] given) throws Exception {
        TopicPartition first = new TopicPartition("drive-shared", 0);
        String streams = given[1];
        try (Admin admin = Admin.create(Map.<String, Object>of(
                "bootstrap.servers", given[0], "client.id", "java-groups"))) {
            admin.listConfigResources().all().get();
            for (var one : admin.listShareGroupOffsets(Map.of("drive-share", new ListShareGroupOffsetsSpec()))
                    .all().get().get("drive-share").entrySet()) {
                System.out.println("says\tshare offset\t" + one.getKey() + "\t"
                    + (one.getValue() == null ? "none" : one.getValue().startOffset()));
            }
            admin.alterShareGroupOffsets("drive-share", Map.of(first, 5L)).all().get();
            admin.deleteShareGroupOffsets("drive-share", Set.of("drive-shared")).all().get();
            admin.deleteShareGroups(List.of("drive-share")).all().get();
            admin.describeStreamsGroups(List.of(streams)).all().get();
            TopicPartition flow = new TopicPartition("drive-none", 0);
            admin.alterStreamsGroupOffsets(streams, Map.of(flow, new OffsetAndMetadata(4))).all().get();
            admin.listStreamsGroupOffsets(Map.of(streams, new ListStreamsGroupOffsetsSpec())).all().get();
            admin.deleteStreamsGroupOffsets(streams, Set.of(flow)).all().get();
            admin.deleteStreamsGroups(List.of(streams)).all().get();
            refused("forceTerminateTransaction", admin.forceTerminateTransaction("no such id").result());
            refused("unregisterController", admin.unregisterController(99).all());
        }
        System.exit(0);
    }

    static void refused(String name, KafkaFuture<Void> asked) throws InterruptedException {
        String said = "nothing";
        try {
            asked.get();
        } catch (ExecutionException error) {
            said = error.getCause().getClass().getSimpleName();
        }
        System.out.println("refused\t" + name + "\t" + said);
    }
}
