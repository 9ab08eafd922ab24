import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Iterator;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/**
 * A codec for {@code flexwire vectors check}, made of kafka-clients: it reads a message and writes
 * it again, and writes the bytes of a message from its JSON.
 *
 * <p>{@code java -cp 'JARS/*' Codec.java}. Only messages of kafka-clients are known.
 */
public final class Codec {
    private static final JsonMapper JSON = new JsonMapper();
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    private Codec() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer(JSON.readTree(line), answer);
            } catch (InvocationTargetException error) {
                answer.put("refused", error.getCause().toString());
            } catch (ClassNotFoundException error) {
                answer.put("unsupported", "kafka-clients has no such message");
            } catch (Exception error) {
                answer.put("refused", error.toString());
            }
            out.println(JSON.writeValueAsString(answer));
        }
    }

    private static void answer(JsonNode question, ObjectNode answer) throws Exception {
        String what = question.get("do").asText();
        if (what.equals("decode-records")) {
            ArrayNode batches = answer.putObject("json").putArray("batches");
            try {
                for (RecordBatch batch : MemoryRecords.readableRecords(data(question)).batches()) {
                    batch.ensureValid();
                    records(batch, batches.addObject().putArray("records"));
                }
            } catch (RuntimeException error) {
                answer.removeAll();
                throw error;
            }
            return;
        }
        boolean hasSuffix = question.get("type").asText().matches("request|response|header");
        String name = PACKAGE + question.get("message").asText() + (hasSuffix ? "Data" : "");
        short version = (short) question.get("version").asInt();
        Class<?> kind = Class.forName(name);
        Message message = (Message) kind.getConstructor().newInstance();
        if (what.equals("encode")) {
            message = (Message) Class.forName(name + "JsonConverter")
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, question.get("json"), version);
        } else {
            message.read(new ByteBufferAccessor(data(question)), version);
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(bytes), cache, version);
        answer.put("hex", HexFormat.of().formatHex(bytes.array()));
    }

    private static ByteBuffer data(JsonNode question) {
        return ByteBuffer.wrap(HexFormat.of().parseHex(question.get("hex").asText()));
    }

    private static void records(RecordBatch batch, ArrayNode told) {
        // Not the plain iterator: it makes room for as many records as a hostile batch says it has.
        Iterator<Record> found = batch.streamingIterator(BufferSupplier.create());
        while (found.hasNext()) {
            Record record = found.next();
            record.ensureValid();
            ObjectNode one = told.addObject();
            one.put("offset", record.offset()).put("timestamp", record.timestamp());
            one.put("key", hex(record.key())).put("value", hex(record.value()));
            ArrayNode headers = one.putArray("headers");
            for (Header header : record.headers()) {
                byte[] value = header.value();
                headers.addArray()
                    .add(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))))
                    .add(hex(value == null ? null : ByteBuffer.wrap(value)));
            }
        }
    }

    private static String hex(ByteBuffer data) {
        if (data == null) {
            return null;
        }
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
