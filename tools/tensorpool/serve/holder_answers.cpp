#include "serve/holder_answers.hpp"

#include <chrono>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"
#include "formats/holders/answer.hpp"
#include "serve/requests.hpp"

namespace tensorpool::command::serve {
namespace {

// Below Limits::write, the time for a whole answer.
constexpr std::chrono::seconds patience{3};
constexpr std::size_t all_arrays = 100;

}  // namespace

std::string HolderAnswers::ask_process(std::uint64_t process) {
    const StatisticsReader reader = StatisticsReader::attach(process);
    return to_json(holders::ask(reader, patience), process, all_arrays);
}

void HolderAnswers::answer(const httplib::Request& request, httplib::Response& response,
                           bool has_token) {
    if (!has_token) {
        refuse(response, 403,
               "holders are only named if tensorpool serve was started with --token-file, because "
               "any user of the machine can connect");
        return;
    }
    const auto process = find_process(watcher_, request, response);
    if (!process) return;
    const std::unique_lock lock(asking_, std::try_to_lock);
    if (!lock) {
        refuse(response, 503, "another request for holders is under way; try again after it");
        return;
    }
    try {
        response.set_content(ask_(*process), "application/json");
    } catch (const CommandError& error) {
        refuse(response, 504, error.what());
    } catch (const AttachError& error) {
        refuse(response, 404, error.what());
    }
}

}  // namespace tensorpool::command::serve
