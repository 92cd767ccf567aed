# SPDX-License-Identifier: Apache-2.0
# compile_onvif OUT FLAG…: the fuzz target of what ONVIF reads from the network, with the pure part of ServerAccess, a module of its own. Core is the library that
# `swift build -c release` leaves behind.
compile_onvif() {
  local out=$1 onvif=Sources/Plugins/services/ONVIF access=Sources/Plugins/support/ServerAccess built=${FUZZ_CORE:-.build/release} work=.build/fuzz/onvif-modules
  local flags
  shift
  [[ -e $built/libFrameCore.so ]] || swift build -c release
  mkdir -p "$work"
  printf 'module CXML2 { header "%s" export * }\n' "$PWD/$onvif/Shims/CXML2/include/CXML2.h" >"$work/module.modulemap"
  flags=("$level" -swift-version 6 -use-ld=lld -parse-as-library -I "$work" -I "$built/Modules" -I Sources/Core/StageLink/include -I $access/Shims/CNettle "$@")
  clang -c -O1 -g -fsanitize=address,fuzzer-no-link -isystem /usr/include/libxml2 -I $onvif/Shims/CXML2/include $onvif/Shims/CXML2/CXML2.c -o "$work/CXML2.o"
  swiftc "${flags[@]}" -wmo -module-name ServerAccess -emit-module -emit-module-path "$work/ServerAccess.swiftmodule" -emit-object -o "$work/ServerAccess.o" \
    $access/{ASCII,Authorization,Base64,Base64Stream,Credentials,CredentialsFile,IPAddress,ListenAddress,LoginTries,MessageDigest,PeerAddress,Secrets,UserLines}.swift
  swiftc "${flags[@]}" -module-name FuzzTarget -o "$out" Tests/Fuzz/ONVIFFuzz.swift $onvif/{XML,Access}/*.swift $onvif/Events/{EventState,EventDesk,TopicFilter,EventService}.swift \
    $onvif/Device/{DeviceFacts,DeviceIdentity,Operation,DeviceService,MadeProfiles,MediaNodes,MediaService,Media2Service,Snapshots}.swift \
    $onvif/Discovery/{DiscoveryMessage,Interfaces}.swift $onvif/Server/DeviceEndpoint.swift "$work/CXML2.o" "$work/ServerAccess.o" -L "$built" -lFrameCore -lxml2 -lnettle \
    -Xlinker "-rpath=$PWD/$built"
}
