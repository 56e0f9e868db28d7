#include "common/launch/observer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "common/settings.hpp"

namespace tensorpool::command::launch {
namespace {

constexpr unsigned max_files = 8;
constexpr std::size_t max_note_bytes = 1024;
/// A caller sends its message at once. If there are more callers than this, the oldest silent one
/// is dropped.
constexpr std::size_t max_callers = 64;
/// Connections accepted at a time. The limit keeps the program's signals from waiting.
constexpr int max_accepted = 256;

std::string random_name() {
    unsigned long long random[2] = {};
    if (::getrandom(random, sizeof random, 0) != static_cast<ssize_t>(sizeof random)) {
        throw CommandError(run_failed, "run: the system returned no random numbers");
    }
    return fmt::format("tensorpool-run-{}-{:016x}{:016x}", ::getpid(), random[0], random[1]);
}

Descriptor listen_at(const std::string& name) {
    Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (!socket ||
        ::bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
        ::listen(socket.number(), SOMAXCONN) != 0) {
        throw CommandError(run_failed,
                           fmt::format("run: cannot listen on a socket: {}", std::strerror(errno)));
    }
    return socket;
}

void watch(const Descriptor& events, const Descriptor& watched) {
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(events.number(), EPOLL_CTL_ADD, watched.number(), &event);
}

Descriptor open_spare() {
    return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

/// Takes all descriptors of a message, so that unwanted ones are closed.
std::vector<Descriptor> files_of(msghdr& message) {
    std::vector<Descriptor> files;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part) + i * sizeof(int), sizeof number);
            files.emplace_back(number);
        }
    }
    return files;
}

/// Receives a message; nothing if it has not arrived yet.
std::optional<Message> receive(const Descriptor& socket, pid_t process) {
    char text[max_note_bytes];
    iovec part{.iov_base = text, .iov_len = sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(max_files * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(socket.number(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    Message message{.process = process, .files = {}, .note = {}};
    if (got <= 0) return message;  // closed without a message
    message.files = files_of(header);
    if (message.files.empty()) message.note.assign(text, static_cast<std::size_t>(got));
    return message;
}

}  // namespace

Observer::Observer()
    : name_(random_name()),
      listening_(listen_at(name_)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      spare_(open_spare()) {
    if (!events_) throw CommandError(run_failed, "run: out of file descriptors; raise `ulimit -n`");
    watch(events_, listening_);
}

void Observer::take(const std::function<void(Message)>& use) {
    for (int i = 0; i < max_accepted && accept_one(); ++i) read_callers(use);
    read_callers(use);
}

void Observer::read_callers(const std::function<void(Message)>& use) {
    std::erase_if(callers_, [&](const Caller& caller) {
        std::optional<Message> message = receive(caller.socket, caller.process);
        if (!message) return false;
        use(std::move(*message));
        return true;
    });
}

bool Observer::accept_one() {
    Descriptor socket(
        ::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
        add(std::move(socket));
        return true;
    }
    if (errno != EMFILE && errno != ENFILE) return errno == EINTR || errno == ECONNABORTED;
    // A connection that is not accepted would keep the socket readable forever. The spare
    // descriptor makes room to accept and close it.
    spare_ = Descriptor();
    socket = Descriptor(::accept4(listening_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    socket = Descriptor();
    spare_ = open_spare();
    ++turned_away_;
    return true;
}

void Observer::add(Descriptor socket) {
    ucred peer{};
    socklen_t bytes = sizeof peer;
    if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
        peer.uid != ::geteuid()) {
        return;
    }
    if (callers_.size() == max_callers) callers_.erase(callers_.begin());
    watch(events_, socket);
    callers_.push_back({std::move(socket), peer.pid});
}

}  // namespace tensorpool::command::launch
