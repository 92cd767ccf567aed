# compile_chain OUT FLAG…: the fuzz target of the stages between a file and its recording. Each plugin is a module of its own, with the fuzzer's counters; Core
# and the network stack are the libraries that `swift build -c release` leaves behind, without them.
compile_chain() {
  local out=$1 built=.build/release work=.build/fuzz/modules module sources flags
  shift
  [[ -e $built/libFrameCore.so && -e $built/libFrameNetwork.so ]] || swift build -c release --product framehost
  mkdir -p "$work"
  flags=(-O -swift-version 6 -use-ld=lld -parse-as-library -enable-testing -I "$work" -I "$built/Modules" "$@")
  for module in CAVFormat CX264 CDatagram; do flags+=(-I "Sources/Plugins/Shims/$module/include"); done
  flags+=(-I Sources/Plugins/Shims/CNettle)
  for module in "$built"/*.build/module.modulemap; do flags+=(-Xcc "-fmodule-map-file=$module"); done
  for module in .build/checkouts/*/Sources/*/include; do flags+=(-Xcc "-I$module"); done
  local objects=()
  for module in FileSource X264Encoder Rate Recorder RTSPSink; do
    # Each plugin's entry has the same symbol.
    mapfile -t sources < <(find "Sources/Plugins/$module" -name '*.swift' ! -name "${module}Plugin.swift" | sort)
    swiftc "${flags[@]}" -wmo -module-name "$module" -emit-module -emit-module-path "$work/$module.swiftmodule" -emit-object \
      -o "$work/$module.o" "${sources[@]}"
    objects+=("$work/$module.o")
  done
  for source in CAVFormat/CAVFormat CAVFormat/CAVFilter CX264/CX264 CDatagram/CDatagram; do
    clang -c -O1 -g -fsanitize=address,fuzzer-no-link -I "Sources/Plugins/Shims/${source%/*}/include" \
      "Sources/Plugins/Shims/$source.c" -o "$work/${source#*/}.o"
    objects+=("$work/${source#*/}.o")
  done
  swiftc "${flags[@]}" Tests/Fuzz/MediaChainFuzz.swift "${objects[@]}" -module-name FuzzTarget -o "$out" -L "$built" -lFrameCore \
    -lFrameNetwork -lx264 -lavformat -lavcodec -lavutil -lswscale -lnettle -Xlinker "-rpath=$PWD/$built"
}
