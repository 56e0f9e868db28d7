#include "run.hpp"

#include <stdexcept>

#include "contest/child_process.hpp"
#include "contest/worker_line.hpp"

namespace tensorpool::photos {
namespace {

ChildOrder order_for(const Contender& contender, const std::vector<std::filesystem::path>& files,
                     const Options& options) {
    ChildOrder order;
    order.preload = contender.preload;
    order.arguments = {"--work",    contender.work,
                       "--threads", std::to_string(options.threads),
                       "--output",  folder_of(contender, options).string()};
    if (options.frugal) order.arguments.push_back("--frugal");
    order.arguments.push_back("--");
    for (const std::filesystem::path& file : files) order.arguments.push_back(file.string());
    return order;
}

void check_preload(const Contender& contender, const std::string& found) {
    if (contender.preload.empty() == found.empty()) return;
    throw std::runtime_error(contender.name + ": malloc was to come from " +
                             (contender.preload.empty() ? "the C library" : contender.preload) +
                             ", but comes from " + (found.empty() ? "the C library" : found));
}

}  // namespace

std::filesystem::path folder_of(const Contender& contender, const Options& options) {
    return std::filesystem::path(options.output) / contender.name;
}

Run run(const Contender& contender, const std::vector<std::filesystem::path>& files,
        const Options& options, const std::function<void(std::size_t)>& on_picture) {
    std::filesystem::create_directories(folder_of(contender, options));
    Run run;
    run.outcomes.resize(files.size());
    const auto end_picture = [&](const WorkerLine& line) {
        run.outcomes.at(line.number) = {line.kind == WorkerLine::Kind::done, line.text,
                                        line.pixels};
        on_picture(line.number);
    };
    const auto hear = [&](const std::string& text) {
        const WorkerLine line = parse_worker_line(text);
        switch (line.kind) {
            case WorkerLine::Kind::done:
            case WorkerLine::Kind::failed:
                return end_picture(line);
            case WorkerLine::Kind::preload:
                return check_preload(contender, line.text);
            case WorkerLine::Kind::report:
                run.report += line.text + '\n';
        }
    };
    run.measured = run_self(order_for(contender, files, options), hear);
    return run;
}

}  // namespace tensorpool::photos
