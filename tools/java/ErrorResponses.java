import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * The response that a release's own class of a request gives where the request fails as a whole.
 *
 * <p>A line of standard input is "API_KEY VERSION HEX CODE...", with the request's body. A line of
 * output has a word for each code: the response's body in hex, "null" where there is no response,
 * or "!" and an exception's name. It is "!" and a name alone where the request cannot be read. See
 * tools/error_response_vectors.py.
 */
public final class ErrorResponses {
    private ErrorResponses() {}

    public static void main(String[] arguments) throws IOException {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answers(line.split(" ")));
        }
        out.flush();
    }

    private static String answers(String[] words) {
        List<String> answers = new ArrayList<>();
        for (String code : List.of(words).subList(3, words.length)) {
            try {
                // A class may keep what it made of itself for the first error.
                AbstractRequest request = request(words);
                answers.add(answer(request, Errors.forCode(Short.parseShort(code))));
            } catch (Throwable error) {
                answers.add("!" + error.getClass().getSimpleName());
            }
        }
        return String.join(" ", answers);
    }

    /** Gives the request, by the form of the method that the release has. */
    private static AbstractRequest request(String[] words) throws Throwable {
        ByteBuffer bytes = ByteBuffer.wrap(HexFormat.of().parseHex(words[2]));
        for (Method method : AbstractRequest.class.getMethods()) {
            if (method.getName().equals("parseRequest")) {
                Object from = method.getParameterTypes()[2].isInstance(bytes)
                    ? bytes : new ByteBufferAccessor(bytes);
                ApiKeys key = ApiKeys.forId(Integer.parseInt(words[0]));
                try {
                    Object parsed = method.invoke(null, key, Short.parseShort(words[1]), from);
                    return (AbstractRequest) parsed.getClass().getField("request").get(parsed);
                } catch (InvocationTargetException error) {
                    throw error.getCause();
                }
            }
        }
        throw new IllegalStateException("no parseRequest");
    }

    private static String answer(AbstractRequest request, Errors error) {
        AbstractResponse response = request.getErrorResponse(0, error.exception());
        if (response == null) {
            return "null";
        }
        Message data = response.data();
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer bytes = ByteBuffer.allocate(data.size(cache, request.version()));
        data.write(new ByteBufferAccessor(bytes), cache, request.version());
        return HexFormat.of().formatHex(bytes.array());
    }
}
