#include "serve/requests.hpp"

#include <charconv>

#include "serve/json.hpp"

namespace tensorpool::command::serve {

void refuse(httplib::Response& response, int status, std::string_view message) {
    response.status = status;
    response.set_content(error_json(message), "application/json");
}

std::optional<std::uint64_t> number_in(const httplib::Request& request, const std::string& name) {
    const std::string text = request.get_param_value(name);
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> find_process(const Watcher& watcher, const httplib::Request& request,
                                          httplib::Response& response) {
    const std::optional<std::uint64_t> process = number_in(request, "process");
    if (!process) {
        refuse(response, 400, "no process given: add ?process= with an id from /api/processes");
    } else if (!watcher.view(*process)) {
        refuse(response, 404, watcher.why_not(*process));
    } else {
        return process;
    }
    return std::nullopt;
}

}  // namespace tensorpool::command::serve
