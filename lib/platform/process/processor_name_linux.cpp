// proc(5): /proc/cpuinfo has a line "model name<tab>: ..." for each processor, except on some
// architectures.

#include <string_view>

#include "platform/files/line_reader_linux.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

ProcessorName processor_name() noexcept {
    const SystemCalls system_calls;
    ProcessorName name;
    LineReader lines("/proc/cpuinfo");
    std::string_view line;
    while (lines.next(line)) {
        const std::size_t colon = line.find(": ");
        if (line.substr(0, 10) != "model name" || colon == std::string_view::npos) continue;
        line.substr(colon + 2).copy(name.text, sizeof name.text - 1);
        break;
    }
    return name;
}

}  // namespace tensorpool::platform
