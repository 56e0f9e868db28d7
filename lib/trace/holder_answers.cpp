#include "trace/ring_layout.hpp"

#include <cstring>
#include <utility>

namespace tensorpool::trace {
namespace {

constexpr auto relaxed = std::memory_order_relaxed;

/// Returns the open file. Its header is empty if there was no memory.
platform::SharedMemory share(std::uint64_t request, std::string_view text) noexcept {
    const std::size_t bytes = sizeof(HoldersHeader) + text.size();
    platform::SharedMemory file = platform::share_memory(holders_file, bytes);
    void* const address = std::exchange(file.address, nullptr);
    if (address == nullptr) return file;
    if (platform::get_shared_pages(address, bytes)) {
        const HoldersHeader header{.magic = holders_magic,
                                   .process = platform::identify_process().number,
                                   .request = request,
                                   .bytes = text.size()};
        std::memcpy(address, &header, sizeof header);
        text.copy(static_cast<char*>(address) + sizeof header, text.size());  // may have no data
    }
    platform::unmap(address, bytes);
    return file;
}

}  // namespace

void HolderAnswers::set_handler(HolderHandler handler) noexcept {
    handler_ = handler;
}

void HolderAnswers::look(Control& control) noexcept {
    const std::uint64_t request = control.holders_asked.load(relaxed);
    if (request == control.holders.load(relaxed) || request == passed_on_) return;
    passed_on_ = request;
    if (handler_ != nullptr) return handler_(request);
    publish(control, request, {});
}

// After a fork, the handler of the child may still answer a request to the parent.
void HolderAnswers::answer(Control& control, std::uint64_t request,
                           std::string_view text) noexcept {
    if (request > passed_on_ || request <= control.holders.load(relaxed)) return;
    publish(control, request, text);
}

// The former answer is closed last, so that a reader that finds neither sees a new number.
void HolderAnswers::publish(Control& control, std::uint64_t request,
                            std::string_view text) noexcept {
    const platform::SharedMemory former = std::exchange(file_, share(request, text));
    control.holders.store(request, std::memory_order_release);
    platform::close_shared_memory(former);
}

void HolderAnswers::forget() noexcept {
    platform::close_shared_memory(file_);
    file_ = {};
    passed_on_ = 0;
}

}  // namespace tensorpool::trace
