// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// Options for the cluster that runs a batch.
struct EngineOptions: ParsableArguments {
    @ArgumentParser.Option(help: "Tasks that the files are divided among. One for each file unless given, 200 at most.")
    var tasks: Int?

    @ArgumentParser.Option(
        name: .customLong("tasks-at-once"),
        help: "Tasks that may run at once. As many as there is room for unless given.")
    var tasksAtOnce: Int?

    @ArgumentParser.Option(help: "Cores of a task. As many as the chain's plan has threads that work unless given.")
    var cores: Int?

    @ArgumentParser.Option(
        help: ArgumentHelp("Memory of a task. What the chain's plan needs unless given.", valueName: "MiB"))
    var memory: Int?

    @ArgumentParser.Option(
        help: ArgumentHelp("The container image, for Kubernetes: framehost:latest unless given.", valueName: "name"))
    var image: String?

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "A persistent volume's claim and the folder that it is here and in the pods, for Kubernetes. Repeatable.",
            valueName: "claim:/folder"))
    var volume: [String] = []

    func check(_ on: BatchEngine?) throws {
        for (name, value, range) in [
            ("tasks", tasks, 1...1_000_000), ("tasks-at-once", tasksAtOnce, 1...1_000_000), ("cores", cores, 1...1024),
            ("memory", memory, 1...(1 << 30)),
        ] {
            guard let value else { continue }
            guard on != nil else { throw ValidationError("--\(name) is for a cluster. Say which with --on.") }
            if !range.contains(value) {
                throw ValidationError(
                    "--\(name) \(value): must be a whole number from \(range.lowerBound) to \(range.upperBound).")
            }
        }
        if on != .kubernetes, image != nil {
            throw ValidationError("--image is for Kubernetes. Leave it out, or say --on kubernetes.")
        }
        if on != .kubernetes, !volume.isEmpty {
            throw ValidationError("--volume is for Kubernetes. Leave it out, or say --on kubernetes.")
        }
        if on == .kubernetes, volume.isEmpty {
            throw ValidationError(
                "--on kubernetes needs the volume that pods find the files in. Name its claim, and the folder that it is here and there: --volume archive:/mnt/archive."
            )
        }
        for text in volume where KubernetesManifest.Volume(text) == nil {
            throw ValidationError(
                "--volume \(text): must be a claim and an absolute folder. Write for example --volume archive:/mnt/archive."
            )
        }
    }
}
