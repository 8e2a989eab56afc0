// SPDX-License-Identifier: Apache-2.0
import java.util.ArrayList;
import java.util.HashMap;

class Mixed {
    static int fibonacci(int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    }

    public static void main(String[] arguments) {
        for (int round = 0;; round++) {
            fibonacci(15);
            HashMap<String, Integer> counts = new HashMap<>();
            for (int i = 0; i < 1000; i++) {
                counts.merge("key" + (i * 7919 + round) % 97, 1, Integer::sum);
            }
            ArrayList<String> keys = new ArrayList<>(counts.keySet());
            keys.sort((a, b) -> b.compareTo(a));
        }
    }
}
