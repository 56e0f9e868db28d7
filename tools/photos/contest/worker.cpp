#include "contest/worker.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fstream>
#include <opencv2/core.hpp>
#include <string_view>

#include <tensorpool/context.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/opencv.hpp>
#include <tensorpool/scratch_report.hpp>
#include <tensorpool/statistics.hpp>

#include "contest/worker_line.hpp"
#include "develop/context_mat_allocator.hpp"
#include "develop/develop.hpp"
#include "develop/develop_in_context.hpp"
#include "develop/mat_scopes.hpp"
#include "jpeg.hpp"
#include "pictures.hpp"

namespace tensorpool::photos {
namespace {

namespace fs = std::filesystem;

void send(const WorkerLine& line) {
    std::puts(to_string(line).c_str());
    std::fflush(stdout);
}

/// OpenCV also prints the errors that it throws; the comparing process prints them with the file
/// name.
int print_nothing(int, const char*, const char*, const char*, int, void*) {
    return 0;
}

/// Returns the number of the picture's pixels.
using Process = std::function<std::size_t(const Picture&)>;

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

WorkerLine process_or_say_why(const Process& process, const Picture& picture) {
    try {
        return {WorkerLine::Kind::done, 0, process(picture), {}};
    } catch (const cv::Exception& error) {
        return {WorkerLine::Kind::failed, 0, 0, error.err};
    } catch (const std::exception& error) {
        return {WorkerLine::Kind::failed, 0, 0, error.what()};
    }
}

void process_all(const Options& options, const Process& process) {
    const std::vector<Picture> pictures = with_result_names(find_pictures(options.pictures));
    for (std::size_t number = 0; number < pictures.size(); ++number) {
        WorkerLine line = process_or_say_why(process, pictures[number]);
        line.number = number;
        send(line);
    }
}

void send_report(const std::string& text) {
    std::istringstream report(text);
    for (std::string line; std::getline(report, line);) {
        send({WorkerLine::Kind::report, 0, 0, line});
    }
}

void work_with_default_allocator(const Options& options) {
    const Frugal frugal = options.frugal ? Frugal::yes : Frugal::no;
    process_all(options, [&](const Picture& picture) {
        const cv::Mat photograph = read_jpeg(picture.file);
        write_jpeg(options.output / fs::path(picture.result), develop(photograph, {}, frugal));
        return photograph.total();
    });
}

void work_in_pool(const Options& options) {
    cv::Mat::setDefaultAllocator(&global_mat_allocator());
    work_with_default_allocator(options);
    send_report(to_text(get_global_memory_pool().statistics()));
}

void work_in_context(const Options& options) {
    Context context;
    ContextMatAllocator memory(context);
    cv::Mat::setDefaultAllocator(&memory);
    process_all(options, [&](const Picture& picture) {
        const MatPhase phase(memory, picture.result);
        const cv::Mat photograph = read_jpeg(picture.file);
        write_jpeg(options.output / fs::path(picture.result),
                   develop_in_context(photograph, memory));
        return photograph.total();
    });
    send_report(to_text(scratch_report()) + '\n' + to_text(context.arena().statistics()) +
                to_text(context.scratch().statistics()));
    cv::Mat::setDefaultAllocator(cv::Mat::getStdAllocator());
}

}  // namespace

int work(const Options& options) {
    const std::map<std::string, void (*)(const Options&)> works = {
        {"malloc", work_with_default_allocator},
        {"pool", work_in_pool},
        {"context", work_in_context},
        {"probe", [](const Options&) {}},
    };
    const auto found = works.find(options.work);
    if (found == works.end()) return 2;
    send({WorkerLine::Kind::preload, 0, 0, mapped_file("tcmalloc")});

    cv::redirectError(print_nothing);
    cv::setNumThreads(options.threads);
    found->second(options);
    return 0;
}

}  // namespace tensorpool::photos
