# What engines compute is checked against the models room's reference; pictures are read with OpenCV where it is found.
target_sources(strobe_engines_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/engine_case.cc
  ${CMAKE_CURRENT_LIST_DIR}/onnx_file.cc ${CMAKE_CURRENT_LIST_DIR}/operation_cases.cc
  ${CMAKE_CURRENT_LIST_DIR}/../models/reference_executor.cc)
set_property(SOURCE ${CMAKE_CURRENT_LIST_DIR}/torchvision_test.cc ${CMAKE_CURRENT_LIST_DIR}/files_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/training_test.cc ${CMAKE_CURRENT_LIST_DIR}/loader_test.cc
  ${CMAKE_CURRENT_LIST_DIR}/onnx_export_test.cc
  APPEND PROPERTY COMPILE_DEFINITIONS STROBE_TEST_PYTHON="${STROBE_PYTHON}"
  STROBE_TEST_TORCHVISION="${CMAKE_CURRENT_LIST_DIR}/torchvision_reference.py"
  STROBE_TEST_ONNX_REFERENCE="${CMAKE_CURRENT_LIST_DIR}/onnx_reference.py"
  STROBE_TEST_TENSORRT_REFERENCE="${CMAKE_CURRENT_LIST_DIR}/tensorrt_reference.py"
  STROBE_TEST_TRAINING="${CMAKE_CURRENT_LIST_DIR}/training_reference.py"
  STROBE_TEST_PLUGINS="${CMAKE_BINARY_DIR}/lib/test_plugins")
find_package(OpenCV QUIET COMPONENTS core imgproc imgcodecs)
if(OpenCV_FOUND)
  target_link_libraries(strobe_engines_test PRIVATE opencv_core opencv_imgproc opencv_imgcodecs)
  target_compile_definitions(strobe_engines_test PRIVATE STROBE_TEST_OPENCV)
endif()

# Plugins that the loader must refuse, one a way of being wrong.
foreach(fault old_abi no_symbol throws)
  add_library(strobe_test_engine_${fault} MODULE ${CMAKE_CURRENT_LIST_DIR}/faulty_engine.cc)
  string(TOUPPER ${fault} macro)
  target_compile_definitions(strobe_test_engine_${fault} PRIVATE FAULT_${macro})
  target_link_libraries(strobe_test_engine_${fault} PRIVATE strobe_engines)
  set_target_properties(strobe_test_engine_${fault} PROPERTIES OUTPUT_NAME strobe_engine_${fault}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/test_plugins)
  strobe_warnings(strobe_test_engine_${fault})
  add_dependencies(strobe_engines_test strobe_test_engine_${fault})
endforeach()
# The tests open the real ones.
foreach(name torch openvino opencv tensorrt)
  if(TARGET strobe_engine_${name})
    add_dependencies(strobe_engines_test strobe_engine_${name})
  endif()
endforeach()
# Options are named where they differ from their defaults.
target_compile_options(strobe_engines_test PRIVATE -Wno-missing-field-initializers)

# Parts of the torch plugin, which shows nothing but the interface of engines.
if(TARGET strobe_engine_torch)
  file(GLOB torch_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/torch/*.cc)
  set(torch_parts device lidar_loss operations preprocess threads train trained_graph yolo_loss)
  list(TRANSFORM torch_parts REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/engines/torch/\\1.cc")
  if(NOT STROBE_MEDIA)
    list(FILTER torch_tests EXCLUDE REGEX "/preprocess_test.cc$")  # makes FFmpeg's frames
  endif()
  add_executable(strobe_engine_torch_test ${torch_tests} ${torch_parts} support/places.cc)
  target_include_directories(strobe_engine_torch_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_definitions(strobe_engine_torch_test PRIVATE FMT_HEADER_ONLY)
  target_link_libraries(strobe_engine_torch_test PRIVATE strobe_libtorch strobe_engines strobe_media GTest::gmock
    GTest::gtest_main)
  if(STROBE_MEDIA)
    target_link_libraries(strobe_engine_torch_test PRIVATE PkgConfig::FFMPEG)
  endif()
  get_target_property(torch_rpath strobe_engine_torch BUILD_RPATH)
  set_target_properties(strobe_engine_torch_test PROPERTIES BUILD_RPATH "${torch_rpath}")
  strobe_warnings(strobe_engine_torch_test)
  gtest_discover_tests(strobe_engine_torch_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endif()

# The tensorrt plugin on stand-ins for TensorRT and the driver, made of the headers that the plugin is made of.
if(TARGET strobe_engine_tensorrt)
  get_property(tensorrt_headers GLOBAL PROPERTY STROBE_TENSORRT_HEADERS)
  list(GET tensorrt_headers 0 tensorrt_include)
  file(STRINGS ${tensorrt_include}/NvInferVersion.h tensorrt_numbers REGEX "define (NV_TENSORRT|TRT)_(MAJOR|MINOR|PATCH)")
  set(tensorrt_version "")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX MATCH "(NV_TENSORRT_${part}|TRT_${part}_ENTERPRISE) ([0-9]+)" found "${tensorrt_numbers}")
    list(APPEND tensorrt_version ${CMAKE_MATCH_2})
  endforeach()
  list(GET tensorrt_version 0 tensorrt_major)
  list(GET tensorrt_version 1 tensorrt_minor)
  list(GET tensorrt_version 2 tensorrt_patch)
  math(EXPR tensorrt_number "${tensorrt_major} * 10000 + ${tensorrt_minor} * 100 + ${tensorrt_patch}")

  find_package(Python3 COMPONENTS Interpreter)
  set(stubs ${CMAKE_CURRENT_BINARY_DIR}/tensorrt_stubs)
  set(stand_ins ${CMAKE_BINARY_DIR}/lib/fake_tensorrt)
  file(MAKE_DIRECTORY ${stubs})
  add_custom_command(OUTPUT ${stubs}/stub_interfaces.h
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_LIST_DIR}/tensorrt/stub_interfaces.py ${tensorrt_include}
            ${stubs}/stub_interfaces.h
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/tensorrt/stub_interfaces.py ${tensorrt_include}/NvInferImpl.h VERBATIM)
  add_library(strobe_fake_tensorrt MODULE ${CMAKE_CURRENT_LIST_DIR}/tensorrt/fake_tensorrt.cc
    ${CMAKE_CURRENT_LIST_DIR}/tensorrt/fake_cuda.cc ${stubs}/stub_interfaces.h)
  target_include_directories(strobe_fake_tensorrt PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(strobe_fake_tensorrt SYSTEM PRIVATE ${stubs} ${tensorrt_headers})
  set_target_properties(strobe_fake_tensorrt PROPERTIES OUTPUT_NAME nvinfer PREFIX lib SUFFIX .so.${tensorrt_major}
    LIBRARY_OUTPUT_DIRECTORY ${stand_ins})
  add_custom_command(TARGET strobe_fake_tensorrt POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
    libnvinfer.so.${tensorrt_major} ${stand_ins}/libnvonnxparser.so.${tensorrt_major})
  strobe_warnings(strobe_fake_tensorrt)

  add_executable(strobe_engine_tensorrt_test ${CMAKE_CURRENT_LIST_DIR}/tensorrt/tensorrt_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/tensorrt/cache_test.cc ${CMAKE_CURRENT_LIST_DIR}/tensorrt/prep_test.cc
    ${CMAKE_CURRENT_LIST_DIR}/tensorrt/tensorrt_case.cc
    ${CMAKE_CURRENT_LIST_DIR}/engine_case.cc ${CMAKE_CURRENT_LIST_DIR}/onnx_file.cc
    ${CMAKE_CURRENT_LIST_DIR}/../models/reference_executor.cc ${CMAKE_CURRENT_LIST_DIR}/../support/places.cc)
  target_include_directories(strobe_engine_tensorrt_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(strobe_engine_tensorrt_test PRIVATE STROBE_TEST_TENSORRT="${stand_ins}"
    STROBE_TEST_TENSORRT_MAJOR=${tensorrt_major} STROBE_TEST_TENSORRT_VERSION=${tensorrt_number})
  target_compile_options(strobe_engine_tensorrt_test PRIVATE -Wno-missing-field-initializers)
  target_link_libraries(strobe_engine_tensorrt_test PRIVATE strobe_engines GTest::gmock GTest::gtest_main)
  if(STROBE_MEDIA)  # makes FFmpeg's frames
    target_sources(strobe_engine_tensorrt_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/tensorrt/prep_onnx_test.cc
      ${PROJECT_SOURCE_DIR}/src/engines/tensorrt/prep_onnx.cc)
    target_compile_definitions(strobe_engine_tensorrt_test PRIVATE STROBE_TEST_PYTHON="${STROBE_PYTHON}"
      STROBE_TEST_PREP_REFERENCE="${CMAKE_CURRENT_LIST_DIR}/tensorrt/prep_reference.py"
      STROBE_TEST_TENSORRT_REFERENCE="${CMAKE_CURRENT_LIST_DIR}/tensorrt_reference.py")
    target_link_libraries(strobe_engine_tensorrt_test PRIVATE strobe_media PkgConfig::FFMPEG)
  endif()
  strobe_warnings(strobe_engine_tensorrt_test)
  add_dependencies(strobe_engine_tensorrt_test strobe_engine_tensorrt strobe_fake_tensorrt)
  gtest_discover_tests(strobe_engine_tensorrt_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
else()
  strobe_off("tests of engine tensorrt on a stand-in" "TensorRT's headers")
endif()
