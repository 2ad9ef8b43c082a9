"""All targets, by name, in the order of the table."""

from __future__ import annotations

from fuzz import commands, faults, indexes, models, runs, sentences, server, tasks, texts
from fuzz.target import Target

KINDS: tuple[type[Target], ...] = (
    models.ModelFolder,
    models.SoftmaxFolder,
    models.ForgedFolder,
    models.ZippedModel,
    models.ForgedZip,
    models.Hdf5,
    models.Checkpoint,
    models.ManyLangs,
    models.ForgedPickle,
    models.WordCache,
    texts.TextFiles,
    texts.VectorsFile,
    texts.Dictionaries,
    texts.Recipes,
    texts.TaskData,
    tasks.OtherTaskData,
    runs.EmbeddingRun,
    runs.TrainingRun,
    runs.TaskRun,
    runs.ClassifierFolder,
    runs.TaggerFolder,
    runs.ForgedTask,
    tasks.OtherTasks,
    tasks.OtherForgedTasks,
    indexes.IndexFolder,
    indexes.ForgedIndex,
    indexes.IndexRun,
    sentences.Sentences,
    sentences.Texts,
    server.Requests,
    commands.Commands,
    faults.Kills,
    faults.TwoRuns,
    faults.FullDisk,
)
TARGETS = {kind.name: kind for kind in KINDS}
