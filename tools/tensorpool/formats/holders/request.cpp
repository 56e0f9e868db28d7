#include "formats/holders/request.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

#include <tensorpool/holder_request.hpp>

#include "common/pause.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::holders {

Answer ask(const StatisticsReader& process, std::chrono::nanoseconds patience) {
    const HolderRequest request = HolderRequest::ask(process.process());
    std::optional<std::string> text;
    (void)wait_for_answer(process, patience, [&] {
        text = request.answer();
        return text.has_value();
    });
    const bool has_ended = !process.is_running();  // its answer ended with it
    if (text && !(text->empty() && has_ended)) return parse_answer(process.process(), *text);
    if (has_ended) {
        throw CommandError(target_gone,
                           fmt::format("process {} ended before it answered", process.process()));
    }
    throw CommandError(
        finding,
        fmt::format("process {} did not answer within {:.1f} s: none of its threads took a slow "
                    "path of a pool, for example for a large array, or its main thread ran no "
                    "Python code since; with TENSORPOOL_RETAIN_BACKGROUND=on in its environment, "
                    "a thread sees requests at once",
                    process.process(), std::chrono::duration<double>(patience).count()));
}

}  // namespace tensorpool::command::holders
