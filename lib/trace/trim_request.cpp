#include <tensorpool/trim_request.hpp>

#include <utility>

#include "trace/control_finder.hpp"
#include "trace/ring_view.hpp"

namespace tensorpool {

struct TrimRequest::State {
    trace::RingView view;
    std::uint64_t number = 0;
};

TrimRequest::TrimRequest(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TrimRequest::TrimRequest(TrimRequest&&) noexcept = default;
TrimRequest& TrimRequest::operator=(TrimRequest&&) noexcept = default;
TrimRequest::~TrimRequest() = default;

TrimRequest TrimRequest::ask(std::uint64_t process) {
    auto state = std::make_unique<State>();
    state->view = trace::open_for_request(process, "to trim");
    trace::Control& control = state->view.control();
    state->number = control.trims_asked.fetch_add(1, std::memory_order_relaxed) + 1;
    trace::announce_request(control);
    return TrimRequest(std::move(state));
}

std::optional<std::uint64_t> TrimRequest::trimmed_bytes() const noexcept {
    const trace::Control& control = state_->view.control();
    // Pairs with the release of the answer.
    if (control.trims.load(std::memory_order_acquire) < state_->number) return std::nullopt;
    return control.trimmed_bytes.load(std::memory_order_relaxed);
}

}  // namespace tensorpool
