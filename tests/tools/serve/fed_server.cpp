#include "fed_server.hpp"

#include <string>

#include "exchange.hpp"

namespace tensorpool::command::serve::testing {
namespace {

constexpr const char* hidden = "the-hidden-pool";

/// Its process has a name that can be found in answers.
class FedServer : public MadeUpServer {
public:
    explicit FedServer(const std::string& token) : MadeUpServer(token) {
        processes.all[7].snapshot.pools = {made_up_pool(1, hidden)};
        watcher.round(at_second(1));
    }
};

std::size_t count_of(const std::string& what, const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
    return count;
}

bool names_the_server(const std::string& sent) {
    const std::string small = lower(sent);
    return small.find("localhost") != small.npos || small.find("127.0.0.1") != small.npos ||
           small.find("[::1]") != small.npos;
}

void check(const std::string& sent, const std::string& got, bool with_token) {
    if (!got.empty() && !got.starts_with("HTTP/1.1 ")) throw Mismatch("not an answer: " + got);
    const std::size_t answers = answers_in(got);
    if (answers > count_of("\r\n\r\n", sent) + 1) throw Mismatch("more answers than requests");
    if (count_of("\r\nContent-Security-Policy: ", got) != answers) {
        throw Mismatch("an answer without its headers: " + got);
    }
    const bool shown = got.find(hidden) != got.npos;
    if (shown && !names_the_server(sent)) throw Mismatch("statistics under a foreign host name");
    if (shown && with_token && sent.find(the_token) == sent.npos) {
        throw Mismatch("statistics without the token");
    }
}

}  // namespace

void feed_server(std::span<const std::uint8_t> bytes) {
    static FedServer open("");
    static FedServer closed(the_token);
    if (bytes.empty()) return;
    const bool with_token = (bytes[0] & 1U) != 0;
    const std::size_t part = std::size_t(1) << (bytes[0] >> 1 & 15U);
    const std::string sent(bytes.begin() + 1, bytes.end());
    // Ends a stream after this many bytes, which include its first events.
    constexpr std::size_t max = 1000;
    const std::string got = (with_token ? closed : open).converse(sent, part, max);
    check(sent, got, with_token);
}

}  // namespace tensorpool::command::serve::testing
