// SPDX-License-Identifier: Apache-2.0
//
// A build's own tool, as many projects have one: writes a table of the messages that sources use. It is slow, and the tour
// finds out where.
#include <fstream>
#include <iostream>
#include <regex>
#include <string>
#include <vector>

struct message {
    std::string name;
    int count = 0;
};

static message *find(std::vector<message> &messages, const std::string &name)
{
    for (message &known : messages)
        if (known.name == name)
            return &known;
    return nullptr;
}

static void read_file(const char *path, std::vector<message> &messages)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        std::regex pattern("(msg_[a-z0-9]+)\\(");
        std::smatch match;
        if (!std::regex_search(line, match, pattern))
            continue;
        message *known = find(messages, match[1]);
        if (known == nullptr)
            messages.push_back({match[1], 1});
        else
            known->count++;
    }
}

int main(int argc, char **argv)
{
    std::vector<message> messages;
    for (int i = 1; i < argc; i++)
        read_file(argv[i], messages);
    for (const message &message : messages)
        std::cout << "{\"" << message.name << "\", " << message.count << "},\n";
}
