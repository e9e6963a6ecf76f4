"""A module of Lightning, for the tests of the callback and of its page."""

import lightning.pytorch as lightning
import torch

from support import units_worker

# For its Trainer.
QUIET = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
QUIET["accelerator"] = "cpu"


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = units_worker.Model(0)
        self.passes = 0

    def training_step(self, batch, number):
        self.passes += 1
        loss = self.inner(**batch)["loss"]
        self.log("train_loss", loss, batch_size=1)
        return {"loss": loss} if number % 2 else loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.5)
