import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;

/** Sends a number for one of a hundred keys, compares the answer with its own sum, and so on until it is killed. */
public class Client {
    public static void main(String[] arguments) throws IOException {
        var sums = new HashMap<String, Long>();
        try (var socket = new Socket(InetAddress.getLoopbackAddress(), 7000)) {
            socket.setTcpNoDelay(true);
            var lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.ISO_8859_1));
            for (long sent = 0; ; sent++) {
                String key = "key" + sent % 100;
                long number = sent * 7919 % 1000003;
                String expected = sums.merge(key, number, Long::sum).toString();
                String request = "add " + key + " " + number + "\n";
                socket.getOutputStream().write(request.getBytes(StandardCharsets.ISO_8859_1));
                String answer = lines.readLine();
                if (!expected.equals(answer)) {
                    System.err.println(key + ": " + answer + " instead of " + expected);
                    System.exit(1);
                }
            }
        }
    }
}
