#include "inspect/open_scopes.hpp"

#include <algorithm>

namespace tensorpool::command::inspect {
namespace {

// A scope may end before one that began inside it; deeper ones are not looked for, so that a
// hostile file does not take forever.
constexpr std::ptrdiff_t most_depth_searched = 256;

}  // namespace

void OpenScopes::take(const trace::Call& call) {
    auto& open = open_[call.thread];
    if (call.action == TraceAction::scope_begin) open.push_back(call.source);
    if (call.action == TraceAction::scope_end) close(open, call.source);
}

void OpenScopes::close(std::vector<std::uint32_t>& open, std::uint32_t source) {
    const auto end = open.rend() - open.rbegin() > most_depth_searched
                         ? open.rbegin() + most_depth_searched
                         : open.rend();
    const auto found = std::find(open.rbegin(), end, source);
    if (found != end) open.erase(std::next(found).base());
}

}  // namespace tensorpool::command::inspect
