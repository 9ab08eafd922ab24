import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

/** Prints every error code of the clients on the class path: code, name, and whether to try again. */
public final class ErrorCodes {
    public static void main(String[] arguments) {
        for (Errors one : Errors.values()) {
            System.out.println(one.code() + " " + one.name() + " "
                + (one.exception() instanceof RetriableException));
        }
    }
}
