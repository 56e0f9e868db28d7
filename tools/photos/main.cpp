/// @file
/// A real tensor program: develops photographs with memory from malloc, from the pool or from a
/// Context. compare.py runs it with each of them.

#include <opencv2/core.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include <tensorpool/context.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/opencv.hpp>
#include <tensorpool/scratch_report.hpp>
#include <tensorpool/statistics.hpp>

#include "develop/context_mat_allocator.hpp"
#include "develop/develop.hpp"
#include "jpeg.hpp"

namespace tensorpool::photos {
namespace {

constexpr const char* usage =
    "usage: tensorpool_photos malloc|pool|context plain|frugal THREADS [PICTURE RESULT]...\n"
    "\n"
    "Develops each JPEG file PICTURE into RESULT, and prints a line `done NUMBER PIXELS` or\n"
    "`failed NUMBER REASON` for it. Before that, prints `preload FILE`: the library that provides\n"
    "malloc instead of the C library. After that, prints the report of the pool or the Context.\n"
    "tools/run compares them.\n";

struct Arguments {
    std::string_view memory;
    Frugal frugal;
    char** pictures;  // each followed by its result; the last is null
};

using Develop = std::function<cv::Mat(const cv::Mat& photograph)>;

/// OpenCV also prints the errors that it throws; they are printed with the number of the picture.
int print_nothing(int, const char*, const char*, const char*, int, void*) {
    return 0;
}

/// Returns the first file in /proc/self/maps whose name, without its folder, contains `part`; empty
/// if there is none.
std::string mapped_file(std::string_view part) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const std::size_t name = line.rfind('/');
        if (name == std::string::npos || line.find(part, name) == std::string::npos) continue;
        return line.substr(line.find('/'));
    }
    return {};
}

/// Returns the number of the picture's pixels.
std::size_t process(const char* picture, const char* result, const Develop& develop) {
    const cv::Mat photograph = read_jpeg(picture);
    write_jpeg(result, develop(photograph));
    return photograph.total();
}

void print_failure(std::size_t number, std::string reason) {
    std::ranges::replace(reason, '\n', ' ');
    std::printf("failed %zu %s\n", number, reason.c_str());
}

void process_all(const Arguments& arguments,
                 const std::function<std::size_t(char**)>& process_one) {
    std::size_t number = 0;
    for (char** pair = arguments.pictures; *pair != nullptr; pair += 2, ++number) {
        try {
            std::printf("done %zu %zu\n", number, process_one(pair));
        } catch (const cv::Exception& error) {
            print_failure(number, error.err);
        } catch (const std::exception& error) {
            print_failure(number, error.what());
        }
    }
}

void work_with_default_allocator(const Arguments& arguments) {
    process_all(arguments, [&](char** pair) {
        return process(pair[0], pair[1], [&](const cv::Mat& photograph) {
            return develop(photograph, {}, arguments.frugal);
        });
    });
}

void work_in_pool(const Arguments& arguments) {
    cv::Mat::setDefaultAllocator(&global_mat_allocator());
    work_with_default_allocator(arguments);
    std::fputs(to_text(get_global_memory_pool().statistics()).c_str(), stdout);
}

void work_in_context(const Arguments& arguments) {
    Context context;
    ContextMatAllocator memory(context);
    cv::Mat::setDefaultAllocator(&memory);
    process_all(arguments, [&](char** pair) {
        const MatPhase phase(memory, pair[1]);
        return process(pair[0], pair[1], [&](const cv::Mat& photograph) {
            return develop_in_context(photograph, memory);
        });
    });
    const std::string report = to_text(scratch_report()) + '\n' +
                               to_text(context.arena().statistics()) +
                               to_text(context.scratch().statistics());
    std::fputs(report.c_str(), stdout);
    cv::Mat::setDefaultAllocator(cv::Mat::getStdAllocator());
}

int work(const Arguments& arguments) {
    std::printf("preload %s\n", mapped_file("tcmalloc").c_str());
    cv::redirectError(print_nothing);
    if (arguments.memory == "pool") {
        work_in_pool(arguments);
    } else if (arguments.memory == "context") {
        work_in_context(arguments);
    } else {
        work_with_default_allocator(arguments);
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tensorpool::photos

int main(int count, char** arguments) {
    using namespace tensorpool::photos;
    if (count < 4 || count % 2 != 0) {
        std::fputs(usage, stderr);
        return 2;
    }
    const std::string_view operators = arguments[2];
    cv::setNumThreads(std::atoi(arguments[3]));
    return work({arguments[1], operators == "frugal" ? Frugal::yes : Frugal::no, arguments + 4});
}
