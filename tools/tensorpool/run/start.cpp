#include "run/start.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <tensorpool/budget.hpp>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "run/environment.hpp"
#include "run/follow.hpp"
#include "run/program_file.hpp"
#include "run/report.hpp"

namespace tensorpool::command::run {
namespace {

/// Raises the limit of descriptors as far as the system allows, because each process of the program
/// takes some. `restore` gives the program the former limit.
class DescriptorLimit {
public:
    DescriptorLimit() noexcept {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit more = before_;
        more.rlim_cur = before_.rlim_max;
        setrlimit(RLIMIT_NOFILE, &more);
    }
    void restore() const noexcept { setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

/// Opens /dev/null for closed standard streams, so that none of our files gets such a number and
/// the report is not written into it. For the program, the streams stay closed.
void keep_standard_numbers() {
    for (int file = ::open("/dev/null", O_RDWR | O_CLOEXEC); file >= 0;
         file = ::open("/dev/null", O_RDWR | O_CLOEXEC)) {
        if (file > STDERR_FILENO) {
            ::close(file);
            return;
        }
    }
}

/// The file for the report, opened before the program starts.
class ReportOutput {
public:
    explicit ReportOutput(const std::string& path) : path_(path), is_wanted_(path != "none") {
        if (path.empty() || !is_wanted_) return;
        file_ = Descriptor(
            ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
        if (file_) return;
        throw CommandError(run_failed, fmt::format("run: --report {} cannot be written: {}",
                                                   printable(path), std::strerror(errno)));
    }

    bool is_wanted() const noexcept { return is_wanted_; }
    void write(std::string_view text) const {
        const int file = file_ ? file_.number() : STDERR_FILENO;
        while (!text.empty()) {
            const ssize_t written = ::write(file, text.data(), text.size());
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) return report_failure();
            text.remove_prefix(static_cast<std::size_t>(written));
        }
    }

private:
    /// If standard error is closed, the caller does not want messages either.
    void report_failure() const {
        if (!file_) return;
        print_error(fmt::format("tensorpool: run: --report {} could not be written completely: {}",
                                printable(path_), std::strerror(errno)));
    }

    std::string path_;
    bool is_wanted_;
    Descriptor file_;
};

/// Everything that is set up before the program starts.
struct Prepared {
    explicit Prepared(const Arguments& arguments_given)
        : arguments(arguments_given),
          file(find_program(arguments.program.front())),
          paths(find_part_paths()),
          parts(plan_parts(arguments.with, paths, file)),
          report(arguments.report) {
        if (file.empty()) throw no_such_program_error(arguments.program.front());
        if (!arguments.interpose_min.empty() && !is_put(parts, Part::malloc)) {
            throw CommandError(wrong_usage, "run: --interpose-min needs the part malloc");
        }
        check_budgets();
        if (!arguments.trace.empty()) open_trace();
    }
    void check_budgets() const {
        if (arguments.budget.empty()) return;
        const std::vector<std::string> problems = check_budget_file(arguments.budget);
        if (problems.empty()) return;
        throw CommandError(run_failed,
                           fmt::format("run: --budget {}",
                                       printable(fmt::format("{}", fmt::join(problems, "; ")))));
    }
    void open_trace() {
        try {
            trace.emplace(arguments.trace);
        } catch (const CommandError& error) {
            throw CommandError(run_failed, fmt::format("run: --trace {}", error.what()));
        }
    }
    TraceOutput* trace_output() { return trace ? &*trace : nullptr; }

    const Arguments& arguments;
    std::string file;
    PartPaths paths;
    std::vector<PlannedPart> parts;
    ReportOutput report;
    std::optional<TraceOutput> trace;
};

Outcome run_prepared(Prepared& prepared, bool json, Family::Looks looks) {
    const Arguments& arguments = prepared.arguments;
    const Signals signals;
    const DescriptorLimit limit;
    Observer observer;
    const bool polls = prepared.trace.has_value() || looks.live;
    Family family(prepared.trace_output(), std::move(looks));
    Program program(arguments.program,
                    environment_for(arguments, prepared.parts, prepared.paths, observer.name()),
                    [&] {
                        limit.restore();
                        signals.restore();
                    });
    follow(program, signals, observer, family, polls);
    const Outcome outcome = outcome_of(program.code(), program.signal());
    const Report report{arguments, prepared.parts, outcome, family.results(),
                        prepared.trace_output()};
    if (prepared.report.is_wanted())
        prepared.report.write(json ? to_json(report) : to_text(report));
    return outcome;
}

}  // namespace

Outcome run_and_report(const Arguments& arguments, bool json, Family::Looks looks) {
    keep_standard_numbers();
    Prepared prepared(arguments);
    return run_prepared(prepared, json, std::move(looks));
}

int end_like(const Outcome& outcome) {
    if (outcome.signal == 0) return outcome.code;
    leave_no_core();
    take_effect(outcome.signal);
    // The first process of a container cannot be ended by this signal.
    return 128 + outcome.signal;
}

}  // namespace tensorpool::command::run
