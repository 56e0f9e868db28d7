#define NOMINMAX
#define WIN32_LEAN_AND_MEAN

#include "platform/files/input_file.hpp"

#include <windows.h>

#include <algorithm>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

HANDLE native(InputFile::Handle handle) noexcept {
    return reinterpret_cast<HANDLE>(handle);
}

std::error_code last_error() noexcept {
    return {static_cast<int>(GetLastError()), std::system_category()};
}

/// Converts a UTF-8 path to the wide characters of Windows; "" if it is not valid UTF-8.
std::wstring wide(const std::string& path) {
    const int length = static_cast<int>(path.size());
    const int wanted =
        MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), length, nullptr, 0);
    std::wstring text(static_cast<std::size_t>(std::max(wanted, 0)), L'\0');
    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path.data(), length, text.data(), wanted);
    return text;
}

FileKind kind_on_disk(HANDLE file) noexcept {
    BY_HANDLE_FILE_INFORMATION information;
    if (!GetFileInformationByHandle(file, &information)) return FileKind::none;
    const bool is_folder = (information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
    return is_folder ? FileKind::folder : FileKind::regular;
}

OVERLAPPED at(std::uint64_t offset) noexcept {
    OVERLAPPED place{};
    place.Offset = static_cast<DWORD>(offset);
    place.OffsetHigh = static_cast<DWORD>(offset >> 32);
    return place;
}

}  // namespace

InputFile::~InputFile() {
    if (handle_ != none) CloseHandle(native(handle_));
}

InputFile InputFile::open(const char* path, std::error_code& error) {
    // Without backup semantics, a folder could not be distinguished from a file without read
    // permission.
    const HANDLE file = CreateFileW(wide(path).c_str(), GENERIC_READ,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr);
    if (file == INVALID_HANDLE_VALUE) error = last_error();
    return InputFile(reinterpret_cast<Handle>(file));
}

FileKind InputFile::kind() const noexcept {
    switch (GetFileType(native(handle_))) {
        case FILE_TYPE_DISK:
            return kind_on_disk(native(handle_));
        case FILE_TYPE_PIPE:
            return FileKind::pipe;
        case FILE_TYPE_CHAR:
            return FileKind::device;
        default:
            return FileKind::other;
    }
}

std::uint64_t InputFile::bytes() const noexcept {
    LARGE_INTEGER bytes{};
    if (!GetFileSizeEx(native(handle_), &bytes)) return 0;
    return static_cast<std::uint64_t>(bytes.QuadPart);
}

std::size_t InputFile::read(std::uint64_t offset, void* to, std::size_t bytes,
                            std::error_code& error) const noexcept {
    constexpr std::size_t most = std::size_t{1} << 30;  // ReadFile takes the size as a DWORD
    std::size_t done = 0;
    while (done < bytes) {
        OVERLAPPED place = at(offset + done);
        DWORD got = 0;
        const auto some = static_cast<DWORD>(std::min(most, bytes - done));
        if (!ReadFile(native(handle_), static_cast<char*>(to) + done, some, &got, &place)) {
            if (GetLastError() != ERROR_HANDLE_EOF) error = last_error();
            break;
        }
        if (got == 0) break;
        done += got;
    }
    return done;
}

// A read-only view is the same whether shared or private.
FileMapping InputFile::map(std::uint64_t offset, std::size_t bytes, bool /*shared*/,
                           std::error_code& error) const noexcept {
    const HANDLE section =
        CreateFileMappingW(native(handle_), nullptr, PAGE_READONLY, 0, 0, nullptr);
    void* const address =
        section == nullptr ? nullptr
                           : MapViewOfFile(section, FILE_MAP_READ, static_cast<DWORD>(offset >> 32),
                                           static_cast<DWORD>(offset), bytes);
    if (address == nullptr) error = last_error();
    if (section != nullptr) CloseHandle(section);  // the view keeps it open
    if (address == nullptr) return {};
    return {address, base::align_up(bytes, page_bytes())};
}

bool InputFile::drop_from_cache(std::uint64_t, std::uint64_t) const noexcept {
    return false;
}

std::size_t mapping_granularity() noexcept {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwAllocationGranularity;
}

}  // namespace tensorpool::platform
