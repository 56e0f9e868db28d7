// Prints the metrics of the processes with the given ids, or without arguments those of made-up
// processes.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <tensorpool/statistics_reader.hpp>

#include "made_up_snapshots.hpp"

int main(int count, char** arguments) try {
    std::vector<tensorpool::ProcessSnapshot> snapshots;
    for (int word = 1; word < count; ++word) {
        snapshots.push_back(
            tensorpool::StatisticsReader::attach(std::stoull(arguments[word])).snapshot());
    }
    if (count == 1) snapshots = tensorpool::testing::made_up_snapshots();
    const std::string text = tensorpool::to_prometheus(snapshots);
    std::fwrite(text.data(), 1, text.size(), stdout);
} catch (const std::exception& error) {
    std::fprintf(stderr, "print_metrics: %s\n", error.what());
    return 1;
}
