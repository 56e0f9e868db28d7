#include "events/misuse.hpp"

#include <cstdarg>
#include <cstdlib>

#include "events/timeline.hpp"
#include "platform/stacks/program_stack.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::events {

void count_failed_check(statistics::CheckKind kind, std::string_view name) noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    header->failed_checks[static_cast<unsigned>(kind)].fetch_add(1, std::memory_order_relaxed);
    write_entry(EntryKind::check, LimitKind::none, 0, name);
}

namespace {

using base::FixedText;
using statistics::CheckKind;

constexpr std::size_t max_frames = 32;
constexpr std::size_t max_words = 512;
constexpr std::size_t max_report = 12'288;
// Without memory for the whole report: its first line, the words and some frames.
constexpr std::size_t max_short_report = 1024;

// In the order of MisuseKind.
constexpr const char* kind_names[] = {
    "double-free",   "foreign-free",      "interior-free", "wrong-pool",
    "wrong-size",    "mismatched-free",   "overrun",       "write-after-free",
    "access-beyond", "access-after-free", "invalid-query", "corrupt-record",
    "leak",          "wrong-thread",      "scope-order",   "foreign-mark",
    "stale-mark",    "released-handle",   "outlived-owner"};
static_assert(std::size(kind_names) == static_cast<unsigned>(MisuseKind::outlived_owner) + 1);

CheckKind check_of(MisuseKind kind) noexcept {
    if (kind == MisuseKind::leak) return CheckKind::leak;
    if (kind == MisuseKind::wrong_thread) return CheckKind::thread;
    return kind == MisuseKind::scope_order ? CheckKind::scope_order : CheckKind::misuse;
}

// Names may contain anything; what would end the field or the line is written as %XX.
void add_name(FixedText& to, std::string_view name) noexcept {
    if (name.empty()) to.add("-");
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte <= ' ' || byte == '%' || byte == 0x7F) {
            to.add("%%%02X", byte);
        } else {
            to.add("%c", c);
        }
    }
}

void add_size(FixedText& to, const char* field, std::size_t bytes) noexcept {
    if (bytes == Misuse::unknown) {
        to.add(" %s=-", field);
    } else {
        to.add(" %s=%zu", field, bytes);
    }
}

void add_stack(FixedText& to, const char* what, const MisuseStack& stack) noexcept {
    if (stack.frames.empty()) return;
    to.add("  %s by thread %llu:\n", what, static_cast<unsigned long long>(stack.thread));
    for (const std::uintptr_t frame : stack.frames) {
        const platform::CodeOrigin origin = platform::find_code(frame);
        to.add("    %s+0x%llx\n", origin.path == nullptr ? "?" : origin.path,
               static_cast<unsigned long long>(origin.path == nullptr ? frame : origin.offset));
    }
}

enum class After : bool { stop, go_on };

/// The memory for a report. It comes from the system, because threads may have small stacks, and
/// reports are made at any point of the program, also by handlers of signals.
class ReportBuffer {
public:
    ReportBuffer() noexcept
        : pages_(static_cast<char*>(platform::map(max_report, platform::page_bytes()))) {}
    ~ReportBuffer() {
        if (pages_ != nullptr) platform::unmap(pages_, max_report);
    }
    ReportBuffer(const ReportBuffer&) = delete;
    ReportBuffer& operator=(const ReportBuffer&) = delete;

    char* begin() noexcept { return pages_ != nullptr ? pages_ : short_; }
    std::size_t bytes() const noexcept { return pages_ != nullptr ? max_report : sizeof short_; }

private:
    char* pages_;
    char short_[max_short_report];
};

void write_report(const Misuse& misuse, After after, const char* format,
                  std::va_list arguments) noexcept {
    count_failed_check(check_of(misuse.kind), misuse.owner);
    char words[max_words];
    std::vsnprintf(words, sizeof words, format, arguments);
    std::uintptr_t frames[max_frames];
    const MisuseStack here{platform::current_thread_id(),
                           {frames, platform::capture_stack(frames, max_frames)}};
    ReportBuffer report;
    const std::size_t length = describe_misuse(misuse, after == After::stop ? "fatal" : "error",
                                               words, here, report.begin(), report.bytes());
    platform::write_to_stderr(report.begin(), length);
    if (after == After::stop) std::abort();
}

bool goes_on() noexcept {
    const char* const wanted = platform::environment_variable("TENSORPOOL_ON_MISUSE");
    return wanted != nullptr && std::string_view(wanted) == "report";
}

}  // namespace

const char* name_of(MisuseKind kind) noexcept {
    return kind_names[static_cast<unsigned>(kind)];
}

std::size_t describe_misuse(const Misuse& misuse, const char* level, const char* words,
                            MisuseStack here, char* text, std::size_t bytes) noexcept {
    FixedText to(text, bytes);
    to.add("tensorpool: %s: %s ptr=0x%zx", level, name_of(misuse.kind),
           reinterpret_cast<std::uintptr_t>(misuse.pointer));
    add_size(to, "size", misuse.size);
    add_size(to, "requested", misuse.requested);
    to.add(" pool=");
    add_name(to, misuse.owner);
    to.add(" thread=%llu\n", static_cast<unsigned long long>(here.thread));
    if (words != nullptr) to.add("  %s\n", words);
    add_stack(to, "found", here);
    add_stack(to, "allocated", misuse.allocated);
    add_stack(to, "freed", misuse.freed);
    return to.length();
}

void report_misuse(const Misuse& misuse, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_report(misuse, goes_on() ? After::go_on : After::stop, format, arguments);
    va_end(arguments);
}

void note_misuse(const Misuse& misuse, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_report(misuse, After::go_on, format, arguments);
    va_end(arguments);
}

void stop_at_misuse(const Misuse& misuse, const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    write_report(misuse, After::stop, format, arguments);
    va_end(arguments);
    std::abort();
}

}  // namespace tensorpool::events

namespace tensorpool {

void statistics::check_other_settings() noexcept {
    const char* const wanted = platform::environment_variable("TENSORPOOL_ON_MISUSE");
    if (wanted == nullptr || std::string_view(wanted) == "stop" || events::goes_on()) return;
    platform::say("TENSORPOOL_ON_MISUSE is '%.60s'; expected stop or report; used instead: stop",
                  wanted);
}

}  // namespace tensorpool
