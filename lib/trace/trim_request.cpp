#include <tensorpool/trim_request.hpp>

#include <utility>

#include "platform/threads/own_thread.hpp"
#include "trace/control_finder.hpp"
#include "trace/ring_view.hpp"

namespace tensorpool {

struct TrimRequest::State {
    trace::RingView view;
    std::uint32_t number = 0;
};

TrimRequest::TrimRequest(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TrimRequest::TrimRequest(TrimRequest&&) noexcept = default;
TrimRequest& TrimRequest::operator=(TrimRequest&&) noexcept = default;
TrimRequest::~TrimRequest() = default;

TrimRequest TrimRequest::ask(std::uint64_t process) {
    auto state = std::make_unique<State>();
    if (const auto problem = state->view.open_control(trace::find_control(process, "to trim"),
                                                      trace::RingView::Purpose::request)) {
        trace::fail_to_attach(process, AttachFailure::system, *problem);
    }
    trace::Control& control = state->view.control();
    const std::uint64_t asked =
        control.asked.fetch_add(trace::one_trim, std::memory_order_release) + trace::one_trim;
    state->number = static_cast<std::uint32_t>(asked >> trace::trim_shift);
    platform::wake_waiter(control.wake);
    return TrimRequest(std::move(state));
}

std::optional<std::uint64_t> TrimRequest::trimmed_bytes() const noexcept {
    const trace::Control& control = state_->view.control();
    // Pairs with the release of the answer. Numbers wrap around.
    const auto answered = static_cast<std::uint32_t>(control.trims.load(std::memory_order_acquire));
    if (static_cast<std::int32_t>(answered - state_->number) < 0) return std::nullopt;
    return control.trimmed_bytes.load(std::memory_order_relaxed);
}

}  // namespace tensorpool
