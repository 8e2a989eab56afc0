/* SPDX-License-Identifier: Apache-2.0 */

/* Exceptions that are thrown through many frames, virtual calls, and the C++ library. */
#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct node {
    virtual ~node() = default;
    virtual long walk(int depth) const = 0;
};

struct inner : node {
    std::unique_ptr<node> child;
    explicit inner(std::unique_ptr<node> child) : child(std::move(child))
    {
    }
    long walk(int depth) const override
    {
        std::string name = "depth " + std::to_string(depth);
        return child->walk(depth + 1) + static_cast<long>(name.size());
    }
};

struct leaf : node {
    long walk(int depth) const override
    {
        if (depth % 2 == 0) {
            throw std::runtime_error("even");
        }
        std::map<std::string, int> counts;
        for (int i = 0; i < 100; i++) {
            counts[std::to_string(i * 7919 % 50)]++;
        }
        return static_cast<long>(counts.size());
    }
};

int main()
{
    long sum = 0;
    for (int round = 0;; round++) {
        std::unique_ptr<node> root = std::make_unique<leaf>();
        for (int i = 0; i < 20 + round % 2; i++) {
            root = std::make_unique<inner>(std::move(root));
        }
        try {
            sum += root->walk(0);
        } catch (const std::exception &error) {
            sum += error.what()[0];
        }
        std::vector<int> numbers(200);
        std::generate(numbers.begin(), numbers.end(), [&] { return static_cast<int>(sum++ * 31 % 1009); });
        std::stable_sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
    }
}
