#include "run/trace_output.hpp"

#include <fmt/format.h>

#include "common/printable.hpp"
#include "common/units.hpp"

namespace tensorpool::command::run {

std::size_t TraceOutput::look(std::uint64_t process, LiveTrace& trace) {
    return trace.look([&](const TracePart& part) { writer_.add(process, part); });
}

void TraceOutput::finish(std::uint64_t process, LiveTrace& trace) {
    look(process, trace);
    writer_.end(process);
    threads_left_out_ += trace.threads_left_out();
}

std::string TraceOutput::text() const {
    std::string text = fmt::format("{} entries in {}, {}", with_commas(writer_.entries()),
                                   printable(path_), format_size(writer_.written_bytes()));
    if (writer_.dropped() != 0) {
        text += fmt::format("; {} more were lost", with_commas(writer_.dropped()));
    }
    if (threads_left_out_ != 0) {
        text += fmt::format("; {} threads beyond the 512th", with_commas(threads_left_out_));
    }
    if (!writer_.problem().empty()) {
        text += fmt::format("; incomplete: {}", printable(writer_.problem()));
    }
    return text;
}

}  // namespace tensorpool::command::run
