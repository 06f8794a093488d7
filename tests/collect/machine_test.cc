#include "collect/machine.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <thread>

#include "collect/cgroup.h"
#include "support/test_data.h"

namespace strobe::collect {
namespace {

using ::testing::Contains;
using ::testing::IsSupersetOf;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using Facts = std::map<std::string, std::string>;

// A made-up /proc and /sys.
class Tree {
 public:
  Tree& file(const std::string& path, const std::string& text) {
    const auto target = folder_.path() / path;
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target, std::ios::binary) << text;
    return *this;
  }
  Tree& cache(int index, const char* level, const char* type, const char* size) {
    const std::string folder = "sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    return file(folder + "level", std::string(level) + "\n")
        .file(folder + "type", std::string(type) + "\n")
        .file(folder + "size", std::string(size) + "\n");
  }
  Facts facts() const { return machine_facts_of_tree(folder_.path()); }
  const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::ScratchFolder folder_;
};

constexpr const char* kIntelCpuinfo = R"(processor	: 0
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) Platinum 8480+
cpu MHz		: 2000.000
flags		: fpu tsc constant_tsc nonstop_tsc sse4_2 avx fma avx2 avx512f amx_bf16 amx_tile amx_int8 avx512_bf16

processor	: 1
vendor_id	: GenuineIntel
model name	: Intel(R) Xeon(R) Platinum 8480+
flags		: fpu tsc constant_tsc nonstop_tsc sse4_2 avx fma avx2 avx512f amx_bf16 amx_tile amx_int8 avx512_bf16
)";

TEST(MachineFacts, BareIntelServer) {
  Tree tree;
  tree.file("proc/cpuinfo", kIntelCpuinfo)
      .file("sys/devices/system/cpu/online", "0-1\n")
      .file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n")
      .file("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n")
      .file("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,112\n")
      .file("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n")
      .file("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n")
      .file("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3800000\n")
      .file("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n")
      .cache(0, "1", "Data", "48K")
      .cache(1, "1", "Instruction", "32K")
      .cache(2, "2", "Unified", "2048K")
      .cache(3, "3", "Unified", "105M")
      .file("proc/meminfo", "MemTotal:       528152220 kB\nMemFree: 1 kB\nMemAvailable:   500000000 kB\n")
      .file("etc/os-release", "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n")
      .file("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_EQ(tree.facts(), (Facts{{"cpu.boost", "on"},
                                 {"cpu.cores_online", "2"},
                                 {"cpu.features", "sse4_2 avx fma avx2 avx512f avx512_bf16 amx_tile amx_int8 amx_bf16"},
                                 {"cpu.governor", "performance, powersave"},
                                 {"cpu.l1d_kib", "48"},
                                 {"cpu.l2_kib", "2048"},
                                 {"cpu.l3_kib", "107520"},
                                 {"cpu.mhz_max", "3800"},
                                 {"cpu.model", "Intel(R) Xeon(R) Platinum 8480+"},
                                 {"cpu.sockets", "2"},
                                 {"cpu.threads_per_core", "2"},
                                 {"cpu.tsc_invariant", "true"},
                                 {"cpu.vendor", "GenuineIntel"},
                                 {"host.virtualised", "false"},
                                 {"memory.available_mib", "488281"},
                                 {"memory.total_mib", "515773"},
                                 {"os.kernel", "6.1.0-18-amd64"},
                                 {"os.name", "Debian GNU/Linux 12 (bookworm)"}}));
}

TEST(MachineFacts, AmdGuestWithoutGovernor) {
  Tree tree;
  tree.file("proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor tsc avx2\n")
      .file("sys/devices/system/cpu/online", "0\n")
      .file("sys/class/dmi/id/sys_vendor", "QEMU\n")
      .file("sys/devices/system/cpu/cpufreq/boost", "0\n");
  const Facts facts = tree.facts();
  EXPECT_THAT(facts, IsSupersetOf(Facts{{"host.virtualised", "true"},
                                        {"host.hypervisor", "QEMU"},
                                        {"cpu.tsc_invariant", "false"},
                                        {"cpu.features", "avx2"},
                                        {"cpu.boost", "off"}}));
  EXPECT_THAT(facts, Not(Contains(Key("cpu.governor"))));
  EXPECT_THAT(facts, Not(Contains(Key("cpu.mhz_max"))));
}

// Two kinds of cores, no model name, the board in a device tree whose strings end in NUL: a Jetson TX2.
TEST(MachineFacts, ArmBoard) {
  Tree tree;
  tree.file("proc/cpuinfo",
            "processor\t: 0\nFeatures\t: fp asimd aes asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n\n"
            "processor\t: 1\nFeatures\t: fp asimd\nCPU implementer\t: 0x4e\nCPU part\t: 0x003\n\n"
            "processor\t: 2\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd07\n\n"
            "Hardware\t: quill\n")
      .file("proc/device-tree/model", std::string("NVIDIA Jetson TX2\0", 18));
  const Facts facts = tree.facts();
  EXPECT_THAT(facts, IsSupersetOf(Facts{{"cpu.model", "ARM Cortex-A57 + NVIDIA Denver 2"},
                                        {"cpu.cores_online", "3"},
                                        {"cpu.features", "asimd asimddp"},
                                        {"host.board", "NVIDIA Jetson TX2"}}));
  EXPECT_THAT(facts, Not(Contains(Key("host.virtualised"))));
  EXPECT_THAT(facts, Not(Contains(Key("cpu.tsc_invariant"))));
}

TEST(MachineFacts, UnknownArmCoreIsNamedByItsNumbers) {
  Tree tree;
  tree.file("proc/cpuinfo", "processor : 0\nCPU implementer : 0x99\nCPU part : 0x123\n");
  EXPECT_THAT(tree.facts(), Contains(Pair("cpu.model", "ARM core (implementer 0x99, part 0x123)")));
}

TEST(MachineFacts, MissingFilesGiveNoFacts) {
  const Tree tree;
  EXPECT_EQ(tree.facts(), Facts{});
}

TEST(MachineFacts, NonsenseGivesNoFacts) {
  Tree tree;
  tree.file("proc/cpuinfo", std::string(1000, '\0'))
      .file("proc/meminfo", "MemTotal: lots\n:::\nMemAvailable: 12 parsecs\n")
      .file("etc/os-release", "PRETTY_NAME\n=\n")
      .file("sys/devices/system/cpu/online", "9-3,x\n")
      .file("proc/self/cgroup", "nonsense\n0::\n:::\n")
      .file("sys/fs/cgroup/cpu.max", "\n")
      .cache(0, "1", "Data", "K");
  EXPECT_EQ(tree.facts(), Facts{});
}

TEST(CgroupQuota, Version2TakesTheTightestOnTheWayUp) {
  Tree tree;
  tree.file("proc/self/cgroup", "0::/user.slice/job.scope\n")
      .file("sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n")
      .file("sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n")
      .file("sys/fs/cgroup/user.slice/memory.max", "536870912\n")
      .file("sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.path()), 1.5);
  EXPECT_EQ(cgroup_memory_limit(tree.path()), 536870912);
  EXPECT_THAT(tree.facts(), IsSupersetOf(Facts{{"cpu.cores_quota", "1.5"}, {"memory.limit_mib", "512"}}));
}

// Docker with version 1: the path is the host's and does not exist inside.
TEST(CgroupQuota, Version1InsideAContainer) {
  Tree tree;
  tree.file("proc/self/cgroup", "5:cpuset:/docker/0123\n4:cpu,cpuacct:/docker/0123\n3:memory:/docker/0123\n0::/\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "50000\n")
      .file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
      .file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.path()), 0.5);
  EXPECT_EQ(cgroup_memory_limit(tree.path()), std::nullopt);
}

TEST(CgroupQuota, NoneWithoutALimit) {
  Tree tree;
  tree.file("proc/self/cgroup", "4:cpu:/\n0::/\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
      .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
      .file("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_cpu_quota(tree.path()), std::nullopt);
}

std::string output_of(const char* command) {
  std::FILE* pipe = ::popen(command, "r");
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out += static_cast<char>(c);
  ::pclose(pipe);
  while (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

// Against the system's own programs.
TEST(ThisMachine, AgreesWithNprocUnameAndFree) {
  const Facts facts = machine_facts();
  EXPECT_EQ(facts.at("os.kernel"), output_of("uname -r"));
  EXPECT_EQ(facts.at("cpu.arch"), output_of("uname -m"));
  EXPECT_EQ(facts.at("cpu.cores_online"), output_of("getconf _NPROCESSORS_ONLN"));
  EXPECT_EQ(facts.at("memory.total_mib"), output_of("awk '/^MemTotal/ {print int($2 / 1024)}' /proc/meminfo"));
  EXPECT_LE(allowed_cores(), std::stod(output_of("env -u OMP_NUM_THREADS nproc")));
  EXPECT_GT(allowed_cores(), 0);
  EXPECT_THAT(facts, IsSupersetOf({Pair("cpu.cores_allowed", ::testing::_)}));
}

TEST(ThisMachine, AllowedCoresFollowTheAffinityMask) {
  double seen = 0;
  std::thread([&seen] {
    cpu_set_t all;
    ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    seen = allowed_cores();
  }).join();
  EXPECT_GT(seen, 0);
  EXPECT_LE(seen, 1);
}

}  // namespace
}  // namespace strobe::collect
