// SPDX-License-Identifier: Apache-2.0
//
// Functions within functions within functions: what the standard library becomes when all of it is inlined.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace shapes {
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
template <int N> struct Box : Shape {
    double side;
    explicit Box(double s) : side(s) {}
    double area() const override { return side * side * N; }
};
static std::unique_ptr<Shape> make(unsigned kind)
{
    switch (kind % 3) {
    case 0: return std::make_unique<Box<1>>(kind);
    case 1: return std::make_unique<Box<2>>(kind + 1);
    default: return std::make_unique<Box<3>>(kind + 2);
    }
}
} // namespace shapes

static std::map<std::string, std::vector<int>> group(const std::vector<int> &numbers)
{
    std::map<std::string, std::vector<int>> groups;
    for (int number : numbers) {
        groups[std::to_string(number % 97)].push_back(number);
    }
    for (auto &entry : groups) {
        std::sort(entry.second.begin(), entry.second.end(), std::greater<int>());
    }
    return groups;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    double sum = 0;
    for (int round = 0; round < rounds; round++) {
        std::vector<int> numbers(20000);
        std::iota(numbers.begin(), numbers.end(), round);
        std::transform(numbers.begin(), numbers.end(), numbers.begin(), [](int n) { return n * 2654435761u >> 7; });
        std::vector<std::unique_ptr<shapes::Shape>> all;
        for (const auto &entry : group(numbers)) {
            all.push_back(shapes::make(static_cast<unsigned>(entry.second.front())));
        }
        sum = std::accumulate(all.begin(), all.end(), sum, [](double s, const auto &shape) { return s + shape->area(); });
    }
    std::printf("%g\n", sum);
}
