// The recording of the process that this library was loaded into.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

namespace strobe::inject {

// Names in the environment by which `strobe record` tells the library what to do.
inline constexpr const char* kFolderVariable = "STROBE_RECORD_FOLDER";
inline constexpr const char* kRingVariable = "STROBE_RECORD_RING_BYTES";
inline constexpr const char* kBlockVariable = "STROBE_RECORD_BLOCK";

// Starts the recorder into the folder that the environment names, at the first call. False when there is none or it
// could not be started; the reason is then in FOLDER/PID.failed.
bool start_recording();

// Set by the program (ITT's pause): new ranges, marks and counter values are left out.
extern std::atomic<bool> paused;
void set_paused(bool pause);

// Guards the library's tables of what programs register. Held across fork(), so that a child finds whole tables.
std::unique_lock<std::mutex> lock_tables();

// UTF-8 of wide characters.
std::string narrow(const wchar_t* text);

}  // namespace strobe::inject
