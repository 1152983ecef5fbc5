"""Build kernels in their trees: apply, configure, compile, and keep what came out."""

import errno
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kteardown import paths, sandbox
from kteardown.errors import BuildError, LabError
from kteardown.kernels import (
    apply_patches,
    cache_folder,
    kbuild,
    kconfig,
    object_changes,
    same_files,
    toolchain,
)
from kteardown.kernels.build_plan import BuildPlan, base_objects
from kteardown.kernels.cache import Cache
from kteardown.kernels.request import KernelImage, KernelRequest
from kteardown.kernels.source import Sources, file_hash
from kteardown.kernels.source_name import parts_of_patched
from kteardown.progress import Reporter

_TREE_MB = 700
"""Disk space of a build of the base configuration with the hard links to its source."""
# Observed with 6.12 and the base configuration; once kernels are in the cache, their own counts are
# used.
_STEPS = 1860
_VARIANT_STEPS = 40


class Builder:
    def __init__(self, kernels: Cache, sources: Sources, reporter: Reporter, scratch: Path) -> None:
        self._kernels = kernels
        self._sources = sources
        self._reporter = reporter
        self._scratch = scratch

    def build(self, plans: Sequence[BuildPlan], images: dict[str, KernelImage]) -> dict[str, str]:
        """Build ``plans`` into ``images``, the unpatched kernels first.

        Return the optional kernels that could not be built, by name, with the reason.
        """
        for arch, compiler in {(plan.request.arch, plan.request.compiler) for plan in plans}:
            toolchain.need_build_tools(arch, compiler)
        for plan in plans:
            _need_sandbox(plan, self._kernels.folder)
        self._kernels.tree_path("").mkdir(parents=True, exist_ok=True)
        cache_folder.sweep(self._kernels.folder / "trees")
        left_out: dict[str, str] = {}
        patched: dict[str, apply_patches.PatchedFiles] = {}
        for plan in plans:
            with _may_fail(plan.request, left_out):
                if plan.key not in patched:
                    patched[plan.key] = self.apply(plan)
        todo = [plan for plan in plans if plan.request.name not in left_out]
        title = f"Building {len(todo)} kernel{'s' * (len(todo) != 1)}"
        with self._reporter.task(title, total=len(todo)) as task:
            for count, plan in enumerate(sorted(todo, key=lambda plan: bool(plan.request.patches))):
                task.update(count, plan.request.name)
                tree = self._objects(plan)
                locked = cache_folder.locked(tree, self._reporter, f"build {plan.title}")
                with _may_fail(plan.request, left_out), locked:
                    image = self._kernels.lookup(plan.key, plan.request.name)
                    if image is None:
                        self._make(plan, patched[plan.key])
                        image = self._kernels.lookup(plan.key, plan.request.name)
                    assert image is not None
                    images[plan.request.name] = image
        return left_out

    def _objects(self, plan: BuildPlan) -> Path:
        """Return the folder of the objects of base. They depend on the path of the tree in the
        build."""
        return self._kernels.tree_path(plan.base_key + ("" if plan.sandboxed else "-unsafe"))

    def apply(self, plan: BuildPlan) -> apply_patches.PatchedFiles:
        """Apply the patches of ``plan`` to copies of the files that they touch."""
        tree = self._sources.tree(plan.source)
        folder = self._scratch / plan.key
        # If the patches did not apply for another name with the same key, they are tried again from
        # scratch.
        cache_folder.remove(folder)
        folder.mkdir()
        return apply_patches.apply(tree, plan.request.patches, folder, plan.source.id)

    def _make(self, plan: BuildPlan, patched: apply_patches.PatchedFiles) -> None:
        """Publish the kernel of ``plan``: one that was built of the same files, or a new one."""
        if plan.key == plan.base_key:
            self._build(plan, None)
            return
        # Before base is built: its objects may have been pruned, and an equal kernel needs none.
        files = same_files.digest(plan.base_key, patched)
        if same_files.reuse(self._kernels, files, plan.key, plan.request.series):
            return
        if not self._objects(plan).is_dir():
            self._build(plan, None)
        self._build(plan, patched, files)

    def _build(
        self, plan: BuildPlan, patched: apply_patches.PatchedFiles | None, files: str = ""
    ) -> None:
        """Build the unpatched kernel of ``plan``, and keep its objects for the variants.

        It is built from scratch, or from the objects of the source to which a patched one adds
        patches.

        With ``patched``, whose files have the digest ``files``, build the patched one, starting
        from these objects.
        """
        objects = self._objects(plan)
        arch = plan.request.arch
        key = plan.key if patched else plan.base_key
        cache_folder.need_space(objects.parent, _TREE_MB, f"building {plan.title}")
        began = time.monotonic()
        with cache_folder.scratch(objects) as work:
            tree = self._tree(plan, work, key, patched)
            expected = all_steps = self._kernels.steps(arch, variant=False) or _STEPS
            if patched:
                cache_folder.copy_tree(objects, tree.build)
                os.utime(objects)
                expected = self._kernels.steps(arch, variant=True) or _VARIANT_STEPS
            elif below := self._objects_below(plan):
                cache_folder.copy_tree(below, tree.build)
                expected = self._kernels.steps(arch, variant=True) or _VARIANT_STEPS
            if not patched or patched.changes_kconfig:
                (tree.build / ".config").unlink(missing_ok=True)
                self._configure(plan, tree)
            with _naming_log(plan, tree, "default"):
                title = f"Building {plan.title}"
                steps = kbuild.compile_tree(tree, title, expected, all_steps, self._reporter)
            if patched:
                with _naming_missing(plan):
                    changed = object_changes.changed_objects(objects, tree.build)
                    functions = object_changes.changed_functions(objects, tree.build, changed, arch)
                    differing, moved = functions or (None, None)
                    facts = {
                        "changed_objects": changed,
                        "changed_functions": differing,
                        "moved_functions": moved,
                        "files": files,
                    }
                    self._publish(
                        plan, tree, key, plan.request.series, steps=steps, began=began, **facts
                    )
                return
            if not self._kernels.kernel_path(key).is_dir():
                self._publish(plan, tree, key, "", steps=steps, began=began)
            cache_folder.remove(objects)
            tree.build.rename(objects)

    def _objects_below(self, plan: BuildPlan) -> Path | None:
        """Return the objects of the source that a patched one patches, if the patched files are
        newer."""
        if plan.source.kind != "patched" or not plan.sandboxed:
            return None
        _, spec, patches = parts_of_patched(f"patched:{plan.source.origin}")
        objects = base_objects(replace(plan.request, source=spec, exact=None), self._sources)
        tree = self._sources.tree(plan.source)
        names = {name for patch in patches for name, _ in apply_patches.files_in(patch, tree=tree)}
        times = [(tree / name).stat().st_mtime for name in names if (tree / name).is_file()]
        if objects is None or min(times, default=0) <= (objects / "vmlinux").stat().st_mtime:
            return None
        return objects

    def _tree(
        self, plan: BuildPlan, work: Path, key: str, patched: apply_patches.PatchedFiles | None
    ) -> kbuild.Tree:
        """Return the source with the patched files: as the sandbox shows it, or without one as a
        copy.

        In the sandbox the tree has the same path for every kernel. Without it, the path must be the
        one at which the base was built: objtool's dependencies are absolute paths, and every object
        depends on objtool, so at any other path everything would be compiled again.
        """
        source = self._sources.tree(plan.source)
        logs = self._kernels.folder / "logs" / key
        cache_folder.remove(logs)
        logs.mkdir(parents=True)
        if plan.sandboxed:
            view = kbuild.source_view(source, patched, work / "view")
            return kbuild.Tree(work, view, logs, plan.request.arch, plan.request.compiler)
        tree = kbuild.Tree(work, None, logs, plan.request.arch, plan.request.compiler)
        cache_folder.copy_tree(source, tree.path)
        if patched:
            apply_patches.install(patched, tree.path)
        return tree

    def resolve(self, plan: BuildPlan) -> str:
        """Return the ``.config`` of ``plan`` without its patches."""
        tree = self._tree(plan, self._scratch, f"config-{plan.base_key}", None)
        self._configure(plan, tree)
        cache_folder.remove(tree.logs)
        return (tree.build / ".config").read_text(errors="replace")

    def _configure(self, plan: BuildPlan, tree: kbuild.Tree) -> None:
        with _naming_log(plan, tree, "config"):
            kbuild.configure(
                tree, "".join(f"{want.text()}\n" for want in plan.wanted), self._reporter
            )
        with _naming_missing(plan):
            config = kconfig.parse_config((tree.build / ".config").read_text(errors="replace"))
        source = self._sources.tree(plan.source)
        kconfig.check_config(plan.wanted, config, source, plan.request.arch, plan.source.id)

    def _publish(
        self,
        plan: BuildPlan,
        tree: kbuild.Tree,
        key: str,
        series: str,
        *,
        began: float,
        **more: object,
    ) -> None:
        with cache_folder.published(self._kernels.kernel_path(key)) as folder:
            image = folder / tree.image.name
            shutil.copyfile(tree.image, image)
            shutil.copyfile(tree.build / ".config", folder / "config")
            for file in (
                tree.build / "System.map",
                tree.build / "vmlinux",
                tree.logs / "default/build.log",
            ):
                shutil.copyfile(file, folder / file.name)
            release = (tree.build / "include/config/kernel.release").read_text(errors="replace")
            described = KernelImage(
                name="",
                image=image,
                source=plan.source.id,
                series=series,
                arch=plan.request.arch,
                release=re.sub(
                    r"[^\w.+~-]", "_", release.strip()[:64]
                ),  # Whatever a makefile wrote.
                compiler=plan.compiler,
                config_hash=kconfig.digest((folder / "config").read_text(errors="replace")),
                image_hash=file_hash(image),
                sandboxed=plan.sandboxed,
            )
            seconds = round(time.monotonic() - began, 1)
            self._kernels.describe(folder, described, seconds=seconds, **more)
            # Before it is written to the disk, from which it takes seconds to remove.
            if key != plan.base_key:
                cache_folder.remove(tree.build)
        cache_folder.remove(tree.logs)


def _need_sandbox(plan: BuildPlan, cache_dir: Path) -> None:
    """Raise LabError if a series that is not ours, or a layout twin of ours, would be built without
    one.

    Only the texts of the patches count: a stranger's series can have any name.
    """
    if plan.sandboxed or sandbox.unsafe_build:
        return
    shipped = paths.data_dir("series").glob("*/**/*.patch")
    ours = {path.read_bytes() for path in (*shipped, *cache_dir.glob("layout/*/*.patch"))}
    if any(patch.read_bytes() not in ours for patch in plan.request.patches):
        raise LabError(
            f"{plan.request.series} would be built without a sandbox: {sandbox.problem()}",
            hint=(
                "install bubblewrap (see `kteardown doctor`); or give --unsafe-build, with which "
                "patches can run any program as you (docs/safety.md)."
            ),
        )


@contextmanager
def _naming_log(plan: BuildPlan, tree: kbuild.Tree, step: str) -> Iterator[None]:
    """Add the kernel and the path of the log of ``step`` to a BuildError."""
    try:
        yield
    except BuildError as error:
        where = tree.logs / step / "build.log"
        raise BuildError(
            f"{plan.title}: {error.message}\n  whole log: {where}", hint=error.hint
        ) from error


@contextmanager
def _naming_missing(plan: BuildPlan) -> Iterator[None]:
    """Raise BuildError for a file of the build that is missing, or was a link, or has too long a
    path."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENAMETOOLONG):
            raise
        raise BuildError(
            f"{plan.title}: the build did not make the file {error.filename}",
            hint="check what the series changes in makefiles.",
        ) from error


@contextmanager
def _may_fail(request: KernelRequest, left_out: dict[str, str]) -> Iterator[None]:
    """Record in ``left_out`` why an optional kernel cannot be built, instead of raising
    BuildError."""
    try:
        yield
    except BuildError as error:
        if not request.optional:
            raise
        left_out[request.name] = error.message
