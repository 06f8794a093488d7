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
foreach(name torch openvino opencv)
  if(TARGET strobe_engine_${name})
    add_dependencies(strobe_engines_test strobe_engine_${name})
  endif()
endforeach()
# Options are named where they differ from their defaults.
target_compile_options(strobe_engines_test PRIVATE -Wno-missing-field-initializers)

# Parts of the torch plugin, which shows nothing but the interface of engines.
if(TARGET strobe_engine_torch)
  file(GLOB torch_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/torch/*.cc)
  set(torch_parts device lidar_loss operations threads train trained_graph yolo_loss)
  list(TRANSFORM torch_parts REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/engines/torch/\\1.cc")
  add_executable(strobe_engine_torch_test ${torch_tests} ${torch_parts})
  target_compile_definitions(strobe_engine_torch_test PRIVATE FMT_HEADER_ONLY)
  target_link_libraries(strobe_engine_torch_test PRIVATE strobe_libtorch strobe_engines GTest::gmock GTest::gtest_main)
  get_target_property(torch_rpath strobe_engine_torch BUILD_RPATH)
  set_target_properties(strobe_engine_torch_test PROPERTIES BUILD_RPATH "${torch_rpath}")
  strobe_warnings(strobe_engine_torch_test)
  gtest_discover_tests(strobe_engine_torch_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 900)
endif()
