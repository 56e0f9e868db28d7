#include <tensorpool/holder_request.hpp>

#include <tensorpool/profile_request.hpp>
#include <tensorpool/trim_request.hpp>

#include "trace/recorder.hpp"
#include "trace/ring_view.hpp"

namespace tensorpool {

void request_profile_interval(std::uint64_t process, std::size_t bytes) {
    const trace::RingView view = trace::open_for_request(process, "to sample allocations");
    // One more, because 0 stands for no request.
    const std::uint64_t wanted = std::min<std::uint64_t>(bytes, UINT64_MAX - 1) + 1;
    view.control().profile_interval.store(wanted, std::memory_order_relaxed);
    trace::announce_request(view.control());
}

namespace {

/// A request that was sent.
struct Sent {
    trace::RingView view;
    std::uint64_t process = 0;
    std::uint64_t number = 0;
};

template <class State>
std::unique_ptr<State> send(std::uint64_t process, const char* what,
                            trace::Counter trace::Control::*asked) {
    auto state = std::make_unique<State>();
    state->view = trace::open_for_request(process, what);
    state->process = process;
    trace::Control& control = state->view.control();
    state->number = (control.*asked).fetch_add(1, std::memory_order_relaxed) + 1;
    trace::announce_request(control);
    return state;
}

}  // namespace

struct TrimRequest::State : Sent {};

TrimRequest::TrimRequest(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
TrimRequest::TrimRequest(TrimRequest&&) noexcept = default;
TrimRequest& TrimRequest::operator=(TrimRequest&&) noexcept = default;
TrimRequest::~TrimRequest() = default;

TrimRequest TrimRequest::ask(std::uint64_t process) {
    return TrimRequest(send<State>(process, "to trim", &trace::Control::trims_asked));
}

std::optional<std::uint64_t> TrimRequest::trimmed_bytes() const noexcept {
    const trace::Control& control = state_->view.control();
    // Pairs with the release of the answer.
    if (control.trims.load(std::memory_order_acquire) < state_->number) return std::nullopt;
    return control.trimmed_bytes.load(std::memory_order_relaxed);
}

namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 20;

std::string text_in(const platform::ObservedFile& file, std::uint64_t bytes) {
    std::string text(std::min(bytes, max_bytes), '\0');
    text.resize(file.read(sizeof(trace::HoldersHeader), text.data(), text.size()));
    return text;
}

}  // namespace

struct HolderRequest::State : Sent {};

HolderRequest::HolderRequest(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
HolderRequest::HolderRequest(HolderRequest&&) noexcept = default;
HolderRequest& HolderRequest::operator=(HolderRequest&&) noexcept = default;
HolderRequest::~HolderRequest() = default;

HolderRequest HolderRequest::ask(std::uint64_t process) {
    return HolderRequest(send<State>(process, "to name holders", &trace::Control::holders_asked));
}

std::optional<std::string> HolderRequest::answer() const {
    const trace::Control& control = state_->view.control();
    // Pairs with the release of the answer.
    const std::uint64_t answered = control.holders.load(std::memory_order_acquire);
    if (answered < state_->number) return std::nullopt;
    const std::uint64_t owner = control.process.load(std::memory_order_relaxed);
    for (const auto& held : platform::memory_files_of(state_->process, trace::holders_file).files) {
        trace::HoldersHeader header{};
        if (held.file.read(0, &header, sizeof header) == sizeof header &&
            header.magic == trace::holders_magic && header.process == owner &&
            header.request >= state_->number) {
            return text_in(held.file, header.bytes);
        }
    }
    // A later answer may have replaced the file since then; the next call finds it.
    if (control.holders.load(std::memory_order_acquire) != answered) return std::nullopt;
    return "";
}

void set_holder_handler(HolderHandler handler) noexcept {
    trace::recorder().set_holder_handler(handler);
}

void answer_holders(std::uint64_t request, std::string_view text) noexcept {
    trace::recorder().answer_holders(request, text);
}

}  // namespace tensorpool
