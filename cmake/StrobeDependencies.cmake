# What the rooms build on. Required packages come from the system; engines and media are found or left out,
# each with one line that says so (docs/build.md lists the package of each).
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(LZ4 REQUIRED IMPORTED_TARGET liblz4)

pkg_check_modules(FFMPEG IMPORTED_TARGET libavformat libavcodec libavutil libswscale libavdevice)
pkg_check_modules(AVFILTER IMPORTED_TARGET libavfilter libavutil)
pkg_check_modules(FREETYPE IMPORTED_TARGET freetype2)
set(STROBE_MEDIA ${FFMPEG_FOUND})
if(NOT STROBE_MEDIA)
  message(STATUS "media: not built (FFmpeg's development files were not found)")
endif()

find_package(GTest QUIET)
find_package(benchmark QUIET)
if(STROBE_TESTS AND NOT GTest_FOUND)
  message(STATUS "tests: not built (GoogleTest was not found)")
  set(STROBE_TESTS OFF)
endif()

# Wheels of torch and openvino carry C++ headers and CMake files. STROBE_PYTHON is the interpreter of the environment
# that holds them (the Makefile's own one by default); a user's CMAKE_PREFIX_PATH or Torch_DIR goes first.
set(STROBE_PYTHON "" CACHE FILEPATH "Python interpreter whose site-packages hold torch, openvino and plotly")
set(STROBE_SITE_PACKAGES "")
if(STROBE_PYTHON)
  execute_process(COMMAND ${STROBE_PYTHON} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
                  OUTPUT_VARIABLE STROBE_SITE_PACKAGES OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()

# strobe_wants_engine(NAME OUT): whether STROBE_ENGINES asks for engine NAME.
function(strobe_wants_engine name out)
  if(STROBE_ENGINES STREQUAL "auto" OR name IN_LIST STROBE_ENGINES)
    set(${out} ON PARENT_SCOPE)
  else()
    set(${out} OFF PARENT_SCOPE)
  endif()
endfunction()
