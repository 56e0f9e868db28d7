#include "run.hpp"

#include <stdexcept>

#include "contest/child_process.hpp"
#include "contest/worker_line.hpp"

namespace tensorpool::photos {
namespace {

ChildOrder order_for(const ComparedAllocator& allocator,
                     const std::vector<std::filesystem::path>& files, const Options& options) {
    ChildOrder order;
    order.preload = allocator.preload;
    order.arguments = {"--work",    allocator.work,
                       "--threads", std::to_string(options.threads),
                       "--output",  folder_of(allocator, options).string()};
    if (options.frugal) order.arguments.push_back("--frugal");
    order.arguments.push_back("--");
    for (const std::filesystem::path& file : files) order.arguments.push_back(file.string());
    return order;
}

void check_preload(const ComparedAllocator& allocator, const std::string& found) {
    if (allocator.preload.empty() == found.empty()) return;
    throw std::runtime_error(allocator.name + ": malloc was expected from " +
                             (allocator.preload.empty() ? "the C library" : allocator.preload) +
                             ", but is from " + (found.empty() ? "the C library" : found));
}

}  // namespace

std::filesystem::path folder_of(const ComparedAllocator& allocator, const Options& options) {
    return std::filesystem::path(options.output) / allocator.name;
}

Run run(const ComparedAllocator& allocator, const std::vector<std::filesystem::path>& files,
        const Options& options, const std::function<void(std::size_t)>& on_picture) {
    std::filesystem::create_directories(folder_of(allocator, options));
    Run run;
    run.outcomes.resize(files.size());
    const auto end_picture = [&](const WorkerLine& line) {
        run.outcomes.at(line.number) = {line.kind == WorkerLine::Kind::done, line.text,
                                        line.pixels};
        on_picture(line.number);
    };
    const auto read_line = [&](const std::string& text) {
        const WorkerLine line = parse_worker_line(text);
        switch (line.kind) {
            case WorkerLine::Kind::done:
            case WorkerLine::Kind::failed:
                return end_picture(line);
            case WorkerLine::Kind::preload:
                return check_preload(allocator, line.text);
            case WorkerLine::Kind::report:
                run.report += line.text + '\n';
        }
    };
    run.measured = run_self(order_for(allocator, files, options), read_line);
    return run;
}

}  // namespace tensorpool::photos
