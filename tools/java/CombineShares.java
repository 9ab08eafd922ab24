import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.stream.Collectors;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

/**
 * Combines the batches of each line as the share coordinator on the class path does.
 *
 * A line is a start offset and then batches, each as FIRST,LAST,STATE,COUNT. Printed are the
 * combined batches in the same form.
 */
public final class CombineShares {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().trim().split(" ");
            List<PersisterStateBatch> batches = new ArrayList<>();
            for (int at = 1; at < words.length; at++) {
                String[] parts = words[at].split(",");
                batches.add(new PersisterStateBatch(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                    Byte.parseByte(parts[2]), Short.parseShort(parts[3])));
            }
            List<PersisterStateBatch> combined = new PersisterStateBatchCombiner(
                List.of(), batches, Long.parseLong(words[0])).combineStateBatches();
            System.out.println(combined.stream()
                .map(one -> one.firstOffset() + "," + one.lastOffset() + "," + one.deliveryState()
                    + "," + one.deliveryCount())
                .collect(Collectors.joining(" ")));
        }
    }
}
