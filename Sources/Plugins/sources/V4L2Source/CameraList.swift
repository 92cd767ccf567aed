// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A camera that was found: its path, and names by which it can be found again.
struct FoundCamera: Equatable {
    /// The node itself: `/dev/video0`.
    var path: String
    /// VIDIOC_QUERYCAP's card; empty where the device could not be asked.
    var name: String
    var driver: String
    var bus: String
    /// The serial number of a USB device; nil for others.
    var serial: String?
    /// Links in /dev/v4l/by-id and by-path, without folder.
    var ids: [String]
    /// Why it could not be opened.
    var fault: CallFault?

    /// Values of `device` by which it is found again, best first.
    var stableIDs: [String] { ids + (serial.map { ids.isEmpty ? [$0] : [] } ?? []) }

    /// How well the camera matches the request: 0 for the surest match, nil for none.
    func rank(of asked: String) -> Int? {
        if ids.contains(asked) { return 0 }
        if let serial, serial == asked { return 1 }
        if name == asked { return 2 }
        let (mine, wanted) = (name.lowercased(), asked.lowercased())
        if mine == wanted { return 3 }
        return !wanted.isEmpty && mine.contains(wanted) ? 4 : nil
    }
}

/// Looks for cameras: /dev, udev's links, sysfs. [control thread, or stage thread while a camera is away]
enum CameraList {
    private static let folders = ["/dev/v4l/by-id", "/dev/v4l/by-path"]

    /// Every node that gives pictures, in the order of their numbers, including those that cannot be opened.
    static func all(_ calls: any DeviceCalls) -> [FoundCamera] {
        let numbers = calls.names(in: "/dev").compactMap { name in
            name.hasPrefix("video") ? Int(name.dropFirst("video".count)) : nil
        }
        let links = folders.flatMap { folder in
            calls.names(in: folder).map { (name: $0, target: calls.realPath("\(folder)/\($0)")) }
        }
        return numbers.sorted().compactMap { number in
            let path = "/dev/video\(number)"
            let serial = calls.text(of: "/sys/class/video4linux/video\(number)/device/../serial")
            var found = FoundCamera(
                path: path, name: "", driver: "", bus: "", serial: serial.flatMap { $0.isEmpty ? nil : $0 },
                ids: links.filter { $0.target == path }.map(\.name))
            do throws(CallFault) {
                let device = try V4L2Device(path: path, calls: calls)
                guard device.identity.isCamera else { return nil }
                found.name = device.identity.name
                found.driver = device.identity.driver
                found.bus = device.identity.bus
            } catch {
                if error.errno == ENODEV || error.errno == ENXIO || error.errno == ENOENT { return nil }
                found.fault = error
                found.name = calls.text(of: "/sys/class/video4linux/video\(number)/name") ?? ""
            }
            return found
        }
    }

    /// The path of the requested camera.
    ///
    /// - Parameters:
    ///   - asked: A path, a stable id, a serial number, a name or a part of it; nil for the first camera.
    ///   - mayWait: Whether `"ifMissing": "wait"` would help where there is none.
    /// - Throws: ``FrameHostError`` where there is none, or more than one.
    static func path(of asked: String?, _ calls: any DeviceCalls, mayWait: Bool = false) throws -> String {
        if let asked, asked.hasPrefix("/") {
            guard calls.realPath(asked) != nil else {
                throw CameraFault.none(asked: asked, there: all(calls), mayWait: mayWait)
            }
            return asked
        }
        let there = all(calls)
        guard let asked else {
            guard let first = there.first(where: { $0.fault == nil }) ?? there.first else {
                throw CameraFault.none(asked: nil, there: [], mayWait: mayWait)
            }
            return first.path
        }
        let ranks = there.map { $0.rank(of: asked) }
        guard let best = ranks.compactMap({ $0 }).min() else {
            throw CameraFault.none(asked: asked, there: there, mayWait: mayWait)
        }
        let meant = zip(there, ranks).filter { $0.1 == best }.map(\.0)
        guard meant.count == 1 else { throw CameraFault.several(asked, meant) }
        return meant[0].path
    }

    /// A name for the camera at `path` that still holds when it comes back under another number.
    static func stableID(of path: String, _ calls: any DeviceCalls) -> String? {
        let node = calls.realPath(path) ?? path
        return all(calls).first { $0.path == node }?.stableIDs.first
    }
}
