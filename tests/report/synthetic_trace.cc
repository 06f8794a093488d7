// Writes traces that no short run makes, for the tests of the page: synthetic_trace large|hostile OUT.sqlite
#include <cstdio>
#include <string>

#include "report/synthetic_timeline.h"
#include "trace/store.h"

namespace {

using strobe::report::test::SyntheticOptions;

// 12,000 frames of six stages, twelve ranges inside each inference.
SyntheticOptions large() {
  SyntheticOptions options;
  options.frames = 12'000;
  options.nested = 12;
  options.cores_busy = 0.9;
  return options;
}

// Names that would be markup, or would end a script, if they were not kept as text.
SyntheticOptions hostile() {
  SyntheticOptions options;
  options.engine = R"(</script><script>document.title="broken"</script>"'`${1} <b>)";
  options.frames = 60;
  options.stages[0].name = R"(<img src=x onerror="document.title='broken'">)";
  options.stages[3].name = "pöst 火 🔥";
  options.stages[4].name = "&lt;draw&gt; {{title}} <!--";
  options.facts = {{"input", R"(/tmp/"quoted" <i>video<b> & 'more' 火.mp4)"},
                   {"model", "nets/<u>net.cfg"},
                   {"<script>key</script>", "<script>document.title='broken'</script>"}};
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool is_large = std::string(argv[1]) == "large";
  const auto written =
      strobe::trace::write_store(strobe::report::test::synthetic_timeline(is_large ? large() : hostile()), argv[2]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().to_string().c_str());
  return written ? 0 : 1;
}
