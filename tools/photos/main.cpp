/// @file
/// A real tensor program: develops photographs with memory from malloc, from the pool and from a
/// Context, and compares the resource usage.

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "contest/contest.hpp"
#include "contest/worker.hpp"
#include "options.hpp"

int main(int count, char** arguments) {
    using namespace tensorpool::photos;
    try {
        const Options options =
            parse_options(std::vector<std::string>(arguments + 1, arguments + count));
        if (options.help) {
            std::fputs(usage().c_str(), stdout);
            return 0;
        }
        return options.work.empty() ? hold_contest(options) : work(options);
    } catch (const std::invalid_argument& error) {
        std::fprintf(stderr, "tensorpool_photos: %s\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tensorpool_photos: %s\n", error.what());
        return 1;
    }
}
