#include "worker.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string>

#include <opencv2/core.hpp>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics.hpp>

#include "develop.hpp"
#include "jpeg.hpp"
#include "mapped_file.hpp"
#include "pictures.hpp"
#include "pooled_mat_allocator.hpp"
#include "worker_line.hpp"

namespace tensorpool::photos {
namespace {

void tell(const WorkerLine& line) {
    std::puts(to_string(line).c_str());
    std::fflush(stdout);
}

/// OpenCV prints what it throws, too; the driver prints it better.
int print_nothing(int, const char*, const char*, const char*, int, void*) {
    return 0;
}

WorkerLine process(const Picture& picture, const std::filesystem::path& folder) {
    const cv::Mat photograph = read_jpeg(picture.file);
    write_jpeg(folder / picture.result, develop(photograph));
    return {WorkerLine::Kind::done, 0, photograph.total(), {}};
}

WorkerLine process_or_say_why(const Picture& picture, const std::filesystem::path& folder) {
    try {
        return process(picture, folder);
    } catch (const cv::Exception& error) {
        return {WorkerLine::Kind::failed, 0, 0, error.err};
    } catch (const std::exception& error) {
        return {WorkerLine::Kind::failed, 0, 0, error.what()};
    }
}

void process_all(const std::vector<Picture>& pictures, const std::filesystem::path& folder) {
    for (std::size_t number = 0; number < pictures.size(); ++number) {
        WorkerLine line = process_or_say_why(pictures[number], folder);
        line.number = number;
        tell(line);
    }
}

void tell_report() {
    std::istringstream report(to_text(get_global_memory_pool().statistics()));
    for (std::string line; std::getline(report, line);) {
        tell({WorkerLine::Kind::report, 0, 0, line});
    }
}

}  // namespace

int work(const Options& options) {
    const bool pooled = options.work == "pool";
    if (!pooled && options.work != "malloc" && options.work != "probe") return 2;
    tell({WorkerLine::Kind::preload, 0, 0, mapped_file("tcmalloc")});
    if (options.work == "probe") return 0;

    cv::redirectError(print_nothing);
    cv::setNumThreads(options.threads);
    if (pooled) cv::Mat::setDefaultAllocator(&global_mat_allocator());
    process_all(with_result_names(find_pictures(options.pictures)), options.output);
    if (pooled) tell_report();
    return 0;
}

}  // namespace tensorpool::photos
