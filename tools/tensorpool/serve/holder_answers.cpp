#include "serve/holder_answers.hpp"

#include <chrono>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"
#include "formats/holders/answer.hpp"

namespace tensorpool::command::serve {
namespace {

constexpr std::chrono::seconds patience{3};
constexpr std::size_t all_arrays = 100;

}  // namespace

std::string HolderAnswers::ask_process(std::uint64_t process) {
    const StatisticsReader reader = StatisticsReader::attach(process);
    return to_json(holders::ask(reader, patience), process, all_arrays);
}

Response HolderAnswers::answer(const Request& request, bool has_token) {
    if (!has_token) {
        throw Refusal(403,
                      "holders are only named if tensorpool serve was started with --token-file, "
                      "because any user of the machine can connect");
    }
    const std::uint64_t process = find_process(watcher_, request);
    const std::unique_lock lock(asking_, std::try_to_lock);
    if (!lock) {
        throw Refusal(503, "another request for holders is under way; try again after it");
    }
    try {
        return {.body = ask_(process)};
    } catch (const CommandError& error) {
        throw Refusal(504, error.what());
    } catch (const AttachError& error) {
        throw Refusal(404, error.what());
    }
}

}  // namespace tensorpool::command::serve
